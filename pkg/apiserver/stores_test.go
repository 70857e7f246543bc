// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/space"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
)

// innermost stands for the watch cache, or for what is below all layers.
type innermost struct{ storage.Interface }

// TestStoresHaveLayersInOrder looks at which decorators are around a store, from the outside.
func TestStoresHaveLayersInOrder(t *testing.T) {
	objects := unreadable.NewObjects()
	config := storagebackend.NewDefaultConfig("/registry", nil).ForResource(jobsetv1alpha2.Resource("jobsets"))
	config = objects.Tolerate(config, "/jobsets", func() runtime.Object { return &jobsetv1alpha2.JobSet{} })
	for name, tc := range map[string]struct {
		check        *storecheck.Guard
		above, below string
	}{
		"with the check":    {&storecheck.Guard{}, "space.guarded storecheck.ready unreadable.served apiserver.innermost", "storecheck.checked unreadable.store apiserver.innermost"},
		"without the check": {nil, "space.guarded unreadable.served apiserver.innermost", "unreadable.store apiserver.innermost"},
	} {
		t.Run(name, func(t *testing.T) {
			above, below := Stores{Unreadable: objects, StoreCheck: tc.check, Space: &space.Guard{}}.layers()
			for want, layers := range map[string][]watchcache.Wrapper{tc.above: above, tc.below: below} {
				store, err := join(layers)(innermost{}, config)
				if err != nil {
					t.Fatal(err)
				}
				if got := layersOf(store); got != want {
					t.Errorf("got the layers %s, want %s", got, want)
				}
			}
		})
	}
}

// TestNoStoreWithoutItsLayers has a configuration that the layer about unreadable objects has not prepared.
func TestNoStoreWithoutItsLayers(t *testing.T) {
	config := storagebackend.NewDefaultConfig("/registry", nil).ForResource(jobsetv1alpha2.Resource("jobsets"))
	above, below := Stores{Space: &space.Guard{}}.layers()
	for _, layers := range [][]watchcache.Wrapper{above, below} {
		const want = "the store of jobsets.jobset.x-k8s.io does not tolerate objects that cannot be read"
		if store, err := join(layers)(innermost{}, config); store != nil || err == nil || err.Error() != want {
			t.Errorf("got the store %v and the error %v, want no store and %q", store, err, want)
		}
	}
}

func layersOf(store storage.Interface) string {
	var names []string
	for store != nil {
		names = append(names, strings.TrimPrefix(fmt.Sprintf("%T", store), "*"))
		next, _ := reflect.Indirect(reflect.ValueOf(store)).FieldByName("Interface").Interface().(storage.Interface)
		store = next
	}
	return strings.Join(names, " ")
}
