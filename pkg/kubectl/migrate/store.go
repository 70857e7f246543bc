// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
)

// store is the store of jobset-apiserver behind its migration API.
type store struct {
	client rest.Interface
}

const apiPath = migration.Path + "/" + migration.Version

// forwardTimeout is how long each kube-apiserver may take to forward requests after one has said that the APIService is available.
const forwardTimeout = 10 * time.Second

// forwarded repeats a request that no kube-apiserver has forwarded, because it does not know the path yet or takes the server for
// unavailable. Requests of the migration API may be repeated.
func forwarded(ctx context.Context, request func(context.Context) ([]byte, error)) (answer []byte, last error) {
	err := wait.PollUntilContextTimeout(ctx, routePoll, forwardTimeout, true, func(context.Context) (bool, error) {
		answer, last = request(ctx)
		return !apierrors.IsServiceUnavailable(last) && !apierrors.IsNotFound(last), nil
	})
	if last == nil {
		last = err // the context ended before the first request
	}
	return answer, last
}

// send imports objects and removes others, or says what would become of them.
func (s *store) send(ctx context.Context, spec migration.ImportSpec) ([]migration.Result, error) {
	body, err := json.Marshal(&migration.Import{
		TypeMeta: metav1.TypeMeta{APIVersion: migration.GroupVersion.String(), Kind: migration.KindImport}, Spec: spec,
	})
	if err != nil {
		return nil, err
	}
	answer, err := forwarded(ctx, func(ctx context.Context) ([]byte, error) {
		return s.client.Post().AbsPath(apiPath, migration.Imports).SetHeader("Content-Type", runtime.ContentTypeJSON).
			SetHeader("Accept", runtime.ContentTypeJSON).Body(body).DoRaw(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("importing %d objects: %w", len(spec.Objects)+len(spec.Removed), err)
	}
	var got migration.Import
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, fmt.Errorf("importing %d objects: reading the answer: %w", len(spec.Objects)+len(spec.Removed), err)
	}
	return got.Status.Results, nil
}

// inventory returns all objects of a resource that the store has.
func (s *store) inventory(ctx context.Context, resource string) (items []migration.Item, err error) {
	for next := ""; ; {
		answer, err := forwarded(ctx, func(ctx context.Context) ([]byte, error) {
			return s.client.Get().AbsPath(apiPath, migration.Inventories, resource).Param("continue", next).
				SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
		})
		var page migration.Inventory
		if err == nil {
			err = json.Unmarshal(answer, &page)
		}
		if err != nil {
			return nil, fmt.Errorf("reading which %s the store has: %w", resource, err)
		}
		items = append(items, page.Items...)
		if next = page.Continue; next == "" {
			return items, nil
		}
	}
}
