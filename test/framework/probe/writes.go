// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// update reads an object and updates it. A conflict, such as with jobset-controller, is not a failure.
func (w *writes) update(ctx context.Context, n int) error {
	name := fmt.Sprintf("update-%d", n%appliedTo)
	var js jobsetv1alpha2.JobSet
	err := request(w.client.Get(), w.namespace).Name(name).Do(ctx).Into(&js)
	if apierrors.IsNotFound(err) {
		return w.put(ctx, name, nil)
	}
	if err != nil {
		return err
	}
	js.Labels = map[string]string{valueKey: strconv.Itoa(n)}
	err = request(w.client.Put(), w.namespace).Name(name).Body(&js).Do(ctx).Error()
	if apierrors.IsConflict(err) {
		return errSkipped
	}
	return err
}

// remove deletes an object that it creates for this.
func (w *writes) remove(ctx context.Context, n int) error {
	name := fmt.Sprintf("delete-%d", n)
	if err := w.put(ctx, name, nil); err != nil {
		return err
	}
	return request(w.client.Delete(), w.namespace).Name(name).Do(ctx).Error()
}
