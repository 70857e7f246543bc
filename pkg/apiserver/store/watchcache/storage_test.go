// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	goruntime "runtime"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

// slow is an etcd whose requests end when the test lets them.
type slow struct {
	storage.Interface
	begun, end chan struct{}
}

func (s *slow) GetList(_ context.Context, _ string, _ storage.ListOptions, _ runtime.Object) error {
	s.begun <- struct{}{}
	<-s.end
	return nil
}

func (s *slow) GuaranteedUpdate(context.Context, string, runtime.Object, bool, *storage.Preconditions, storage.UpdateFunc, runtime.Object) error {
	return s.GetList(context.Background(), "", storage.ListOptions{}, nil)
}

// tooMany sends ten requests at the same time, of which so many begin, and the others are refused when the client gives up.
func tooMany(t *testing.T, raw *slow, want int, send func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	for range 10 {
		go func() { done <- send(ctx) }()
	}
	for range want {
		<-raw.begun
	}
	synctest.Wait()
	select {
	case <-raw.begun:
		t.Errorf("more than %d requests run at the same time", want)
	default:
	}
	cancel() // those that wait give up
	for range 10 - want {
		if err := <-done; !errors.IsTooManyRequests(err) {
			t.Errorf("a request that could not begin returned %v, want that the client tries again later", err)
		}
	}
	close(raw.end)
	for range want {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestFewLargeListsAreReadFromEtcdAtATime(t *testing.T) {
	isReady := func() bool { return true }
	for name, tc := range map[string]struct {
		objects int
		bytes   int64
		limit   int64
		ready   bool
		want    int
	}{
		"before the watch cache is filled": {objects: 1, bytes: 1, want: 1},
		"large":                            {objects: 4, bytes: maxListBytes, ready: true, want: 1},
		"large, in chunks":                 {objects: 4, bytes: maxListBytes / 2, limit: 1, ready: true, want: 2},
		"medium":                           {objects: 2, bytes: maxListBytes / 8, ready: true, want: 4},
		"small":                            {objects: 1, bytes: 1, ready: true, want: 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				codec := newCodec(t).(*Sharing)
				var kept []*jobset.JobSet
				for i := range tc.objects {
					set := newVersion(types.UID(fmt.Sprint(i)), 1, "driver", 1)
					kept = append(kept, set)
					codec.set(set.UID, version{set.Weak(), tc.bytes})
				}
				raw := &slow{begun: make(chan struct{}), end: make(chan struct{})}
				store := &bounded{Interface: raw, codec: codec, reads: semaphore.NewWeighted(maxListBytes)}
				if tc.ready {
					store.ready.Store(&isReady)
				}
				tooMany(t, raw, tc.want, func(ctx context.Context) error {
					return store.GetList(ctx, "", storage.ListOptions{Predicate: storage.SelectionPredicate{Limit: tc.limit}}, &jobset.JobSetList{})
				})
				goruntime.KeepAlive(kept)
			})
		})
	}
}

func TestFewLargeObjectsAreUpdatedAtATime(t *testing.T) {
	for name, tc := range map[string]struct {
		bytes int64
		want  int
	}{
		"the largest": {bytes: 3 * maxUpdateBytes, want: 1},
		"large":       {bytes: maxUpdateBytes / 4, want: 4},
		"small":       {bytes: minUpdateBytes - 1, want: 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				codec := newCodec(t).(*Sharing)
				set := newVersion("a", 1, "driver", 1)
				codec.set(set.UID, version{set.Weak(), tc.bytes})
				raw := &slow{begun: make(chan struct{}), end: make(chan struct{})}
				store := &bounded{Interface: raw, codec: codec, updates: semaphore.NewWeighted(maxUpdateBytes)}
				tooMany(t, raw, tc.want, func(ctx context.Context) error {
					return store.GuaranteedUpdate(ctx, "", nil, false, nil, nil, set)
				})
			})
		})
	}
}

// staticGetter returns the same options for each resource.
type staticGetter generic.RESTOptions

func (g staticGetter) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions(g), nil
}

// TestVersionsInTheWatchCacheShareTheirSpec stores two versions in a real etcd, and reads what the watch cache has of them.
func TestVersionsInTheWatchCacheShareTheirSpec(t *testing.T) {
	store := newStore(t, true)
	key := "/jobsets/ns/train"
	set := newVersion("", 1, "driver", 0)
	set.Namespace, set.UID = "ns", "a"
	if err := store.Create(t.Context(), key, set, nil, 0); err != nil {
		t.Fatal(err)
	}
	first := cached(t, store, key, 0)
	update := func(input runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		next := input.DeepCopyObject().(*jobset.JobSet)
		next.Status.Restarts++
		return next, nil, nil
	}
	if err := store.GuaranteedUpdate(t.Context(), key, &jobset.JobSet{}, false, nil, update, nil); err != nil {
		t.Fatal(err)
	}
	second := cached(t, store, key, 1)
	if &first.Spec.ReplicatedJobs[0] != &second.Spec.ReplicatedJobs[0] {
		t.Error("two versions of a set with the same spec do not share it")
	}

	var direct jobset.JobSetList
	exact := storage.ListOptions{ResourceVersion: second.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Recursive: true,
		Predicate: storage.Everything}
	if err := store.GetList(t.Context(), "/jobsets/", exact, &direct); err != nil || len(direct.Items) != 1 {
		t.Fatalf("%d sets, error %v", len(direct.Items), err)
	}
	if &direct.Items[0].Spec.ReplicatedJobs[0] != &second.Spec.ReplicatedJobs[0] {
		t.Error("a list does not share the spec with the watch cache")
	}
}

func newStore(t testing.TB, isCached bool) storage.Interface {
	t.Helper()
	codec := newCodec(t).(*Sharing)
	resource := schema.GroupResource{Group: jobset.GroupName, Resource: "jobsets"}
	config := storagebackend.NewDefaultConfig("/registry", codec)
	config.Transport.ServerList = []string{etcdtest.StartServer(t).Endpoint()}
	next := staticGetter{StorageConfig: config.ForResource(resource)}
	options, err := Decorate(next, codec, func(schema.GroupResource) bool { return isCached }, nil).GetRESTOptions(resource, &jobset.JobSet{})
	if err != nil {
		t.Fatal(err)
	}
	keyFunc := func(obj runtime.Object) (string, error) {
		set := obj.(*jobset.JobSet)
		return "/jobsets/" + set.Namespace + "/" + set.Name, nil
	}
	store, destroy, err := options.Decorator(options.StorageConfig, "/jobsets/", keyFunc, func() runtime.Object { return &jobset.JobSet{} },
		func() runtime.Object { return &jobset.JobSetList{} }, storage.DefaultNamespaceScopedAttr, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	return store
}

// cached waits until the watch cache has a version with so many restarts.
func cached(t testing.TB, store storage.Interface, key string, restarts int32) *jobset.JobSet {
	t.Helper()
	var set jobset.JobSet
	poll.Until(t, "the watch cache has "+key, func() bool {
		if store.ReadinessCheck() != nil {
			return false // etcd would answer
		}
		set = jobset.JobSet{}
		err := store.Get(t.Context(), key, storage.GetOptions{ResourceVersion: "0"}, &set)
		return err == nil && set.Status.Restarts == restarts
	})
	return &set
}
