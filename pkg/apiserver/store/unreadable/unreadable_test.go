// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"bytes"
	"context"
	"crypto/aes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// damages are what may have become of an object, and whether its metadata can still be read.
var damages = map[string]struct {
	damage func([]byte) []byte
	known  bool
	cause  string
}{
	"a flipped bit in a length of the spec": {func(data []byte) []byte {
		at := bytes.Index(data, []byte("workers")) - 1
		data[at] ^= 0x40
		return data
	}, true, "proto: ReplicatedJob"},
	"a newer version of the kind": {func(data []byte) []byte {
		return bytes.Replace(data, []byte("v1alpha2"), []byte("v1alpha9"), 1)
	}, true, `no kind "JobSet" is registered for version "jobset.x-k8s.io/v1alpha9"`},
	"a kind that is not known": {func(data []byte) []byte {
		return bytes.Replace(data, []byte("JobSet"), []byte("JobZet"), 1)
	}, true, `no kind "JobZet"`},
	"another name": {func(data []byte) []byte { return bytes.Replace(data, []byte("\x03bad"), []byte("\x03bae"), 1) }, false, "must be named ns/bad"},
	"encrypted":    {func([]byte) []byte { return []byte("k8s:enc:aescbc:v1:gone:0123456789abcdef") }, false, "encrypted data"},
	"nothing":      {func([]byte) []byte { return nil }, false, ""},
	"text":         {func([]byte) []byte { return []byte("\x00\x01\"text\xff") }, false, ""},
	"JSON that is torn": {func([]byte) []byte {
		return []byte(`{"kind":"JobSet","apiVersion":"jobset.x-k8s.io/v1alpha2","metadata":{"name":"ba`)
	}, false, ""},
}

// TestNoStoreWithoutTolerance has the configuration of a resource that nothing has prepared for objects that cannot be read.
func TestNoStoreWithoutTolerance(t *testing.T) {
	config := storagebackend.NewDefaultConfig("/registry/test", nil).ForResource(jobSets)
	for name, wrap := range map[string]watchcache.Wrapper{"below the watch cache": Wrap, "above the watch cache": Serve} {
		if store, err := wrap(&store{}, config); store != nil || err == nil {
			t.Errorf("%s: got the store %v (%v), want an error", name, store, err)
		}
	}
}

func TestOneObjectCostsOnlyItself(t *testing.T) {
	e := newEnv(t)
	for name, tc := range damages {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, running=%t", name, running), func(t *testing.T) {
				e.t = t
				e.start(nil)
				e.create("bad")
				e.create("good")
				e.eventually("the cache has both", func() bool { return len(e.list("0")) == 2 })
				e.put("bad", tc.damage(e.stored("bad")))
				if !running {
					e.start(nil)
				}
				e.checkLists(tc.known, tc.cause)
				e.checkRequests()
				e.checkRemoval()
			})
		}
	}
}

// damaged returns whether the watch cache has a placeholder.
func (e *env) damaged() bool {
	bad := e.list("0")["bad"]
	return bad != nil && unreadable.Is(bad)
}

// checkLists looks at the lists of etcd and of the watch cache.
func (e *env) checkLists(known bool, cause string) {
	e.t.Helper()
	e.eventually("the cache shows a placeholder", e.damaged)
	for _, version := range []string{"", "0"} {
		found := e.list(version)
		if good := found["good"]; good == nil || unreadable.Is(good) || good.UID != "uid-of-good" || len(found) != 2 {
			e.t.Errorf("the list at version %q has not the other object as it is, or more: %v", version, found)
		}
		bad := found["bad"]
		wantUID := map[bool]types.UID{true: "uid-of-bad"}[known]
		if bad.Namespace != "ns" || bad.UID != wantUID || (len(bad.OwnerReferences) == 1) != known ||
			(bad.Labels["a"] == "b") != known || (bad.Annotations["c"] == "d") != known || len(bad.Spec.ReplicatedJobs) > 0 {
			e.t.Errorf("placeholder: %+v", bad)
		}
		if got := bad.Annotations[unreadable.Annotation]; !strings.Contains(got, cause) || got == "" {
			e.t.Errorf("cause: %q, want %q", got, cause)
		}
	}
	all := e.objects.List()
	if len(all) != 1 || all[0].Key != etcdPrefix+"bad" || all[0].name() != "ns/bad" || all[0].Resource != jobSets {
		e.t.Errorf("objects: %+v", all)
	}
}

// checkRequests sends requests for the object that cannot be read. None may change it.
func (e *env) checkRequests() {
	e.t.Helper()
	before := e.stored("bad")
	ctx, out := e.t.Context(), &jobset.JobSet{}
	update := func(input runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		next := input.DeepCopyObject().(*jobset.JobSet)
		next.Labels = map[string]string{"c": "d"}
		return next, nil, nil
	}
	for request, err := range map[string]error{
		"get":                e.store.Get(ctx, keyOf("bad"), storage.GetOptions{}, out),
		"get from the cache": e.store.Get(ctx, keyOf("bad"), storage.GetOptions{ResourceVersion: "0"}, out),
		"update":             e.store.GuaranteedUpdate(ctx, keyOf("bad"), out, false, nil, update, nil),
		"create on update":   e.store.GuaranteedUpdate(ctx, keyOf("bad"), out, true, nil, update, nil),
		"delete":             e.store.Delete(ctx, keyOf("bad"), out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}),
	} {
		status := apierrors.APIStatus(nil)
		if !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError || !strings.Contains(err.Error(), "store remove --key "+etcdPrefix+"bad") {
			e.t.Errorf("%s: %v, want an error of code 500 that names the key", request, err)
		}
	}
	if err := e.store.Create(ctx, keyOf("bad"), newSet("bad"), nil, 0); !storage.IsExist(err) {
		e.t.Errorf("create: %v, want that it exists", err)
	}
	if after := e.stored("bad"); !bytes.Equal(before, after) {
		e.t.Errorf("the stored object was changed from %q to %q", before, after)
	}
	if err := e.store.GuaranteedUpdate(ctx, keyOf("good"), out, false, nil, update, nil); err != nil {
		e.t.Errorf("update of the other object: %v", err)
	}
}

// checkRemoval deletes both objects, the one that cannot be read as the API does with ignoreStoreReadErrorWithClusterBreakingPotential.
func (e *env) checkRemoval() {
	e.t.Helper()
	ctx := e.t.Context()
	for name, unsafe := range map[string]bool{"bad": true, "good": false} {
		opts := storage.DeleteOptions{ExpectTransformOrDecodeError: unsafe}
		if err := e.store.Delete(ctx, keyOf(name), &jobset.JobSet{}, nil, storage.ValidateAllObjectFunc, nil, opts); err != nil {
			e.t.Errorf("deleting %s: %v", name, err)
		}
	}
	e.eventually("the cache has neither", func() bool { return len(e.list("0")) == 0 })
	e.eventually("objects that are gone are forgotten", func() bool { return len(e.objects.List()) == 0 })
}

// TestRepairIsNoticed writes the bytes that an object had, which the watch shows, and brings back a key for encryption, which a restart shows.
func TestRepairIsNoticed(t *testing.T) {
	e := newEnv(t)
	keys := &switched{Transformer: identity.NewEncryptCheckTransformer()}
	e.start(keys)
	e.create("bad")
	sound := e.stored("bad")
	e.put("bad", []byte("damaged"))
	e.eventually("the cache shows a placeholder", e.damaged)
	repaired := func() bool {
		bad := e.list("0")["bad"]
		return bad != nil && !unreadable.Is(bad) && len(bad.Spec.ReplicatedJobs) == 1 && len(e.objects.List()) == 0
	}
	e.put("bad", sound)
	e.eventually("the object is repaired", repaired)

	keys.gone.Store(true)
	e.put("bad", sound)
	e.eventually("the cache shows a placeholder", e.damaged)
	keys.gone.Store(false)
	e.start(keys)
	e.eventually("the server has restarted with the key", repaired)
}

// switched is a transformer whose key may be gone.
type switched struct {
	value.Transformer
	gone atomic.Bool
}

func (s *switched) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	if s.gone.Load() {
		return nil, false, aes.KeySizeError(7)
	}
	return s.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

// TestMostlyUnreadableStoreIsRefused: when most objects cannot be read, the server is configured wrongly, and must not
// replace the one that is not.
func TestMostlyUnreadableStoreIsRefused(t *testing.T) {
	e := newEnv(t)
	e.start(nil)
	for i := range few + 1 {
		e.create(fmt.Sprint("set-", i))
	}
	keys := &switched{}
	keys.gone.Store(true)
	e.serve(keys, true)
	var list jobset.JobSetList
	opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	err := e.store.GetList(t.Context(), "/jobset.x-k8s.io/jobsets/", opts, &list)
	if err == nil || e.store.ReadinessCheck() == nil {
		t.Errorf("the store is served: %v", err)
	}
}

// TestEveryBit flips each bit of a stored object. Whatever becomes of it, a list has an object of the name.
func TestEveryBit(t *testing.T) {
	c := &codec{Codec: newCodec(), of: newResource(jobSets, "/registry/test", "jobset.x-k8s.io/jobsets", func() runtime.Object { return &jobset.JobSet{} }, NewObjects())}
	data, err := runtime.Encode(c.Codec, newSet("bad"))
	if err != nil {
		t.Fatal(err)
	}
	readable, known := 0, 0
	for bit := range 8 * len(data) {
		flipped := bytes.Clone(data)
		flipped[bit/8] ^= 1 << (bit % 8)
		for _, into := range []runtime.Object{nil, &jobset.JobSet{}} {
			obj, _, err := c.Decode(envelope{how: tolerant, key: etcdPrefix + "bad", data: flipped}.encode(), nil, into)
			if err != nil {
				t.Fatalf("bit %d: %v", bit, err)
			}
			set := obj.(*jobset.JobSet)
			if set.Name != "bad" || set.Namespace != "ns" {
				t.Fatalf("bit %d: named %s/%s", bit, set.Namespace, set.Name)
			}
			if into != nil && into != obj {
				t.Fatalf("bit %d: the object is another one than was given", bit)
			}
			switch {
			case !unreadable.Is(set):
				readable++
			case set.UID != "":
				known++
			}
		}
	}
	t.Logf("of %d flipped bits, %d leave an object that can be read, and %d one whose UID can be read", 8*len(data), readable/2, known/2)
}
