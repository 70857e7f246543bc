// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// BenchmarkCost compares the answers of an embedded etcd with and without the check of the store that follows each of them.
func BenchmarkCost(b *testing.B) {
	m := newMember(b)
	g := newMain().started(b, m)
	create(b, storageOf(b, m, nil, false), newSet("a", "1"))
	allow := func(context.Context, runtime.Object) error { return nil }
	restarts := int32(0)
	change := func(input runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		set := input.(*jobset.JobSet).DeepCopy()
		restarts++
		set.Status.Restarts = restarts
		return set, nil, nil
	}
	existing := keyOf("a")
	operations := []struct {
		name string
		do   func(context.Context, storage.Interface) error
	}{
		{"GetNotFound", func(ctx context.Context, s storage.Interface) error {
			return ignoreMissing(s.Get(ctx, keyOf("missing"), storage.GetOptions{}, &jobset.JobSet{}))
		}},
		{"Get", func(ctx context.Context, s storage.Interface) error {
			return s.Get(ctx, existing, storage.GetOptions{}, &jobset.JobSet{})
		}},
		{"List", func(ctx context.Context, s storage.Interface) error {
			return s.GetList(ctx, "/jobsets/", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, &jobset.JobSetList{})
		}},
		{"Update", func(ctx context.Context, s storage.Interface) error {
			return s.GuaranteedUpdate(ctx, existing, &jobset.JobSet{}, false, nil, change, nil)
		}},
		{"DeleteNotFound", func(ctx context.Context, s storage.Interface) error {
			return ignoreMissing(s.Delete(ctx, keyOf("missing"), &jobset.JobSet{}, nil, allow, nil, storage.DeleteOptions{}))
		}},
	}
	for _, operation := range operations {
		for _, guard := range []*Guard{nil, g} {
			s := storageOf(b, m, guard, false)
			b.Run(fmt.Sprintf("%s/checked=%t", operation.name, guard != nil), func(b *testing.B) {
				for b.Loop() {
					if err := operation.do(b.Context(), s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func ignoreMissing(err error) error {
	if storage.IsNotFound(err) {
		return nil
	}
	return err
}
