// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory holds an API server in memory to which real clients and informers talk, without a socket: it is the
// transport of their rest.Config. API groups come, go and come again, requests are refused, hang, are lost or arrive
// late, and watches lag, end, or find that their version has expired.
package memory

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Request is what a client asks for.
type Request struct {
	// Verb is version, discovery, list, watch, get, create, update, patch, apply or delete.
	Verb string
	// Client is what the client calls itself.
	Client                       string
	Resource                     schema.GroupVersionResource
	Namespace, Name, Subresource string
	// From is the version that a watch begins with, Initial means that it shows all objects first, and Selector is the
	// label that objects must carry.
	From, Selector string
	Initial        bool
	Timeout        time.Duration
	// Body is what is sent, and Type is what it is.
	Body []byte
	Type types.PatchType
	// At is when the request was sent, and Number is how many of its verb were sent before.
	At     time.Time
	Number int
	// Code is what was answered; 0 if nothing was, and before that.
	Code int
}

// Trouble is what becomes of a request that is not just carried out.
type Trouble struct {
	// Code is the HTTP status of the refusal; 0 for none.
	Code int
	// Hang means that there is no answer for a minute, and then that of a server which has given up.
	Hang bool
	// Broken means that the connection breaks: after the request was carried out if Lost is true, or so much later if Late
	// is more than 0, or before.
	Broken, Lost bool
	Late         time.Duration
}

// hangs is how long requests hang.
const hangs = time.Minute

// Server is an API server.
type Server struct {
	// Trouble chooses at random how a request fails; if it is nil, every request succeeds. Seen is called for every
	// request with its answer, and Written for every change that a client makes: before is nil if the change creates the
	// object, and after is nil if the change removes it.
	Trouble func(*Request) Trouble
	Seen    func(Request)
	Written func(r *Request, before, after *unstructured.Unstructured)

	mu sync.Mutex
	// lag is how long watches lag.
	lag time.Duration
	// unstreamed servers do not stream lists.
	unstreamed bool
	version    int
	// oldest is the first version from which watches can begin.
	oldest int
	// served are the kinds of the resources of API versions.
	served  map[schema.GroupVersion]map[string]string
	objects map[schema.GroupResource]map[types.NamespacedName]*unstructured.Unstructured
	log     map[schema.GroupResource][]event
	// changed is closed, and replaced, when streams have something to do.
	changed chan struct{}
	streams map[*stream]bool
	counts  map[string]int
}

// event is a change that watches show.
type event struct {
	version int
	at      time.Time
	kind    string
	object  *unstructured.Unstructured
}

// NewServer returns a server without objects.
func NewServer() *Server {
	return &Server{
		version: 1, served: map[schema.GroupVersion]map[string]string{}, objects: map[schema.GroupResource]map[types.NamespacedName]*unstructured.Unstructured{},
		log: map[schema.GroupResource][]event{}, changed: make(chan struct{}), streams: map[*stream]bool{}, counts: map[string]int{},
	}
}

// ClientConfig returns that of clients of the server. Do wraps its transport; nil for not.
func (s *Server) ClientConfig(wrap func(http.RoundTripper) http.RoundTripper) *rest.Config {
	var transport http.RoundTripper = s
	if wrap != nil {
		transport = wrap(s)
	}
	json := rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON}
	return &rest.Config{Host: "http://memory", Transport: transport, QPS: -1, ContentConfig: json}
}

// Serve serves a version of an API with resources, whose kinds are given by their names.
func (s *Server) Serve(version schema.GroupVersion, kinds map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served[version] = maps.Clone(kinds)
}

// Withdraw ends serving a version. Its watches end.
func (s *Server) Withdraw(version schema.GroupVersion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.served, version)
	for stream := range s.streams {
		if stream.request.Resource.GroupVersion() == version {
			stream.end("")
		}
	}
	s.wake()
}

// Serves returns whether a resource is served.
func (s *Server) Serves(resource schema.GroupVersionResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served[resource.GroupVersion()][resource.Resource] != ""
}

// SetLag sets how long watches lag.
func (s *Server) SetLag(lag time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = lag
	s.wake()
}

// SetStreaming sets whether lists can be streamed.
func (s *Server) SetStreaming(can bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unstreamed = !can
}

// EndWatches ends all watches: because their version has expired if that is what is asked for, or for no reason.
func (s *Server) EndWatches(expired bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := ""
	if expired {
		s.version++
		s.oldest, end = s.version, gone
	}
	for stream := range s.streams {
		stream.end(end)
	}
	s.wake()
}

// Watches returns the number of watches of a resource, of any version.
func (s *Server) Watches(resource schema.GroupResource) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.streams {
		if stream.request.Resource.GroupResource() == resource {
			n++
		}
	}
	return n
}

// wake wakes all streams. The lock is held.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Get returns an object; nil if there is none. It must not be changed.
func (s *Server) Get(resource schema.GroupResource, namespace, name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[resource][types.NamespacedName{Namespace: namespace, Name: name}]
}

// List returns all objects in the order of their names. They must not be changed.
func (s *Server) List(resource schema.GroupResource) (all []*unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list(resource)
}

func (s *Server) list(resource schema.GroupResource) (all []*unstructured.Unstructured) {
	byName := s.objects[resource]
	names := slices.SortedFunc(maps.Keys(byName), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		all = append(all, byName[name])
	}
	return all
}

// Create stores a new object, unless its name is taken. Who may is not asked.
func (s *Server) Create(resource schema.GroupResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.create(resource, object)
}

func (s *Server) create(resource schema.GroupResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	if s.objects[resource][nameOf(object)] != nil {
		return nil
	}
	object = object.DeepCopy()
	object.SetUID(types.UID(resource.Resource + "-" + strconv.Itoa(s.version+1)))
	object.SetCreationTimestamp(metav1.NewTime(time.Now()))
	return s.put(resource, "ADDED", object)
}

// Change stores a changed copy of an object, which goes if it is being deleted and nothing holds it any more.
func (s *Server) Change(resource schema.GroupResource, object *unstructured.Unstructured, change func(*unstructured.Unstructured)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.objects[resource][nameOf(object)]
	if live == nil {
		return
	}
	next := live.DeepCopy()
	change(next)
	s.put(resource, "MODIFIED", next)
}

// Delete deletes an object, which stays as long as its finalizers do.
func (s *Server) Delete(resource schema.GroupResource, object *unstructured.Unstructured) {
	s.Change(resource, object, func(next *unstructured.Unstructured) {
		if next.GetDeletionTimestamp() == nil {
			now := metav1.NewTime(time.Now())
			next.SetDeletionTimestamp(&now)
		}
	})
}

// put stores an object, or removes it if it has been deleted and nothing holds it. It returns nil for one that is gone.
func (s *Server) put(resource schema.GroupResource, kind string, object *unstructured.Unstructured) *unstructured.Unstructured {
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	if s.objects[resource] == nil {
		s.objects[resource] = map[types.NamespacedName]*unstructured.Unstructured{}
	}
	stored := object
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		kind, stored = "DELETED", nil
		delete(s.objects[resource], nameOf(object))
	} else {
		s.objects[resource][nameOf(object)] = object
	}
	s.log[resource] = append(s.log[resource], event{s.version, time.Now(), kind, object})
	s.wake()
	return stored
}

func nameOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// in returns an object in a version of its API.
func in(version schema.GroupVersion, kind string, object *unstructured.Unstructured) map[string]any {
	out := runtime.DeepCopyJSON(object.Object)
	out["apiVersion"], out["kind"] = version.String(), kind
	return out
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
