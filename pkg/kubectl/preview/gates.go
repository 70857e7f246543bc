// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

// gatesOf returns the feature gates of the server. Where it does not say, they are the defaults, all of which are off, and a note.
func gatesOf(ctx context.Context, c cluster) (gates.Gates, string, error) {
	states, err := c.featureGates(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return gates.Gates{}, "the server does not say which feature gates are on: all are taken to be off", nil
	case apierrors.IsForbidden(err):
		return gates.Gates{}, "you may not read which feature gates are on, so all are taken to be off: " + err.Error(), nil
	case err != nil:
		return gates.Gates{}, "", fmt.Errorf("reading the feature gates of the server: %w", err)
	}
	return states, "", nil
}
