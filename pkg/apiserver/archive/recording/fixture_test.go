// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	testingclock "k8s.io/utils/clock/testing"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/outbox"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

const (
	prefix = "/registry/test"
	alice  = "alice"
	// collector is the garbage collector.
	collector = "system:serviceaccount:kube-system:generic-garbage-collector"
)

var (
	start   = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	jobSets = schema.GroupResource{Group: jobset.GroupName, Resource: "jobsets"}
	errAway = errors.New("the database is away")
)

// world is an etcd and an archive, which servers share.
type world struct {
	*testing.T
	transport storagebackend.TransportConfig
	archive   *memory
	clock     *testingclock.FakeClock
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{
		T: t, transport: storagebackend.TransportConfig{ServerList: []string{etcdtest.StartServer(t).Endpoint()}},
		archive: &memory{runs: map[archive.Key]api.Run{}, refused: map[archive.Key]bool{}},
		clock:   testingclock.NewFakeClock(start.Add(time.Hour)),
	}
}

// server is a server with a recorder.
type server struct {
	*Recorder
	w     *world
	store storage.Interface
	// end ends the recorder and waits until it has ended.
	end func()
}

// options are what differs between servers.
type options struct {
	cached bool
	outbox func(*outbox.Config)
}

// server returns a server whose recorder does not run yet.
func (w *world) server(change ...func(*options)) *server {
	w.Helper()
	o := options{outbox: func(*outbox.Config) {}}
	for _, c := range change {
		c(&o)
	}
	config := outbox.Config{Transport: w.transport, Prefix: prefix, Clock: w.clock}
	o.outbox(&config)
	box, err := outbox.Open(config)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = box.Close() })
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	s := &server{w: w, end: func() {}, Recorder: New(Config{
		Store: w.archive, Outbox: box, Describe: map[schema.GroupResource]archive.Describe{jobSets: describe},
		New: func(schema.GroupResource) (object, list runtime.Object) {
			return &jobset.JobSet{}, &jobset.JobSetList{}
		},
		Encoder: codecs.LegacyCodec(v1alpha2.SchemeGroupVersion), Clock: w.clock,
		Redact: func(_ *api.Run, spec, _ map[string]any) { delete(spec, "replicatedJobs") },
	})}
	s.store = w.storage(s.Recorder, jobSets, codecs, o.cached)
	return s
}

func (w *world) storage(r *Recorder, resource schema.GroupResource, codecs serializer.CodecFactory, cached bool) storage.Interface {
	w.Helper()
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	codec := watchcache.NewSharing(codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), v1alpha2.SchemeGroupVersion,
		runtime.InternalGroupVersioner))
	config := storagebackend.NewDefaultConfig(prefix, codec)
	config.Transport = w.transport
	next := static(generic.RESTOptions{StorageConfig: config.ForResource(resource)})
	getter := watchcache.Decorate(next, codec, func(schema.GroupResource) bool { return cached }, nil)
	options, err := getter.GetRESTOptions(resource, &jobset.JobSet{})
	if err != nil {
		w.Fatal(err)
	}
	keyFunc := func(object runtime.Object) (string, error) { return keyOf(object.(*jobset.JobSet).Name), nil }
	store, destroy, err := options.Decorator(options.StorageConfig, "/jobset.x-k8s.io/jobsets", keyFunc,
		func() runtime.Object { return &jobset.JobSet{} }, func() runtime.Object { return &jobset.JobSetList{} },
		storage.DefaultNamespaceScopedAttr, nil, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(destroy)
	wrapped, err := r.Wrap(store, options.StorageConfig)
	if err != nil {
		w.Fatal(err)
	}
	return wrapped
}

type static generic.RESTOptions

func (s static) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions(s), nil
}

func keyOf(name string) string { return "/jobset.x-k8s.io/jobsets/" + builders.Namespace + "/" + name }

// start lets the recorder run.
func (s *server) start() *server {
	ctx, cancel := context.WithCancel(s.w.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	s.end = func() {
		cancel()
		running.Wait()
	}
	s.w.Cleanup(s.end)
	return s
}

// as returns the context of a request of a user.
func (w *world) as(name string) context.Context {
	return request.WithUser(w.Context(), &user.DefaultInfo{Name: name})
}

func (s *server) create(name string, change ...func(*jobset.JobSet)) {
	s.w.Helper()
	set := builders.Hub(name, builders.WithHubJobs("workers", 2, 3))
	set.ResourceVersion, set.UID = "", types.UID("uid-of-"+name)
	for _, c := range change {
		c(set)
	}
	if err := s.store.Create(s.w.Context(), keyOf(name), set, nil, 0); err != nil {
		s.w.Fatal(err)
	}
}

func (s *server) update(ctx context.Context, name string, change func(*jobset.JobSet)) *jobset.JobSet {
	s.w.Helper()
	out := &jobset.JobSet{}
	try := func(input runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		change(input.(*jobset.JobSet)) // the library does so when it sets the deletion timestamp
		return input, nil, nil
	}
	if err := s.store.GuaranteedUpdate(ctx, keyOf(name), out, false, nil, try, nil); err != nil {
		s.w.Fatal(err)
	}
	return out
}

func (s *server) remove(ctx context.Context, name string) error {
	return s.store.Delete(ctx, keyOf(name), &jobset.JobSet{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
}

func (s *server) mustRemove(name string) {
	s.w.Helper()
	if err := s.remove(s.w.as(alice), name); err != nil {
		s.w.Fatal(err)
	}
}

func ends(state api.RunState) func(*jobset.JobSet) {
	return func(set *jobset.JobSet) { set.Status.TerminalState = string(state) }
}

func retried(set *jobset.JobSet) {
	set.Status.Restarts++
	set.Status.TerminalState = ""
}

// diesAt makes the goroutine end that comes to a point next.
func (s *server) diesAt(at point) {
	var once sync.Once
	s.at = func(here point) {
		if here == at {
			once.Do(goruntime.Goexit)
		}
	}
}

// apart runs something in a goroutine that may end early, and waits for it.
func apart(fn func()) {
	var running sync.WaitGroup
	running.Go(fn)
	running.Wait()
}

// drained drains the outbox until nothing more happens: objects may be looked at twice.
func (s *server) drained() {
	s.w.Helper()
	d := s.newDrainer()
	for range 2 {
		if err := d.once(s.w.Context()); err != nil {
			s.w.Fatal(err)
		}
	}
}

// entries returns the runs in the outbox.
func (s *server) entries() []string {
	s.w.Helper()
	refs, err := s.Outbox.Index(s.w.Context())
	if err != nil {
		s.w.Fatal(err)
	}
	var keys []string
	for _, ref := range refs {
		keys = append(keys, ref.Key[len(prefix+"/archive-outbox/"):])
	}
	slices.Sort(keys)
	return keys
}

// until steps the clock until something holds.
func (w *world) until(what string, holds func() bool) {
	w.Helper()
	poll.Until(w.T, what, func() bool {
		w.clock.Step(time.Second)
		return holds()
	})
}

// untilArchived waits until the archive has these runs.
func (w *world) untilArchived(want map[string]api.RunState) {
	w.Helper()
	w.until(fmt.Sprintf("the archive has %d runs", len(want)), func() bool { return maps.Equal(want, w.archive.states()) })
}

func (w *world) wantArchived(want map[string]api.RunState) {
	w.Helper()
	wantEqual(w.T, want, w.archive.states())
}

func wantEqual[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// value returns what a counter has.
func value(t *testing.T, counter metrics.CounterMetric) float64 {
	t.Helper()
	got, err := testutil.GetCounterMetricValue(counter)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
