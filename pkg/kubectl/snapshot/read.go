// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Loader reads an object with its children, and on request with their pods.
type Loader[S any] func(ctx context.Context, c *cli.Clients, name string, withPods bool) (S, error)

// Read reads an object with its children and pods, and returns the view of it.
func Read[S, V any](ctx context.Context, c *cli.Clients, name string, load Loader[S], viewOf func(S) V) (view V, err error) {
	object, err := load(ctx, c, name, true)
	if err != nil {
		return view, err
	}
	return viewOf(object), nil
}
