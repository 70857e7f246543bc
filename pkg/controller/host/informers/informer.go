// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/logging"
)

// Need is what a kind needs of a resource.
type Need struct {
	Resource
	// Label is a key that objects carry which the kind needs. It is empty if the kind needs all.
	Label string
	// Unlabeled means that the watch selects nothing by the label, because the server of the resource has placeholders for
	// objects that it cannot read: these may have lost their labels. The kind sees the same objects, and all placeholders.
	Unlabeled bool
	// Only returns whether the kind needs an object that carries the label; nil if it needs all of them. It must not change the object.
	Only func(obj runtime.Object) bool
	// Transform returns what the cache keeps of an object for the kind. It may change the object, accepts its own results,
	// and never returns nil.
	Transform cache.TransformFunc
	// Indexers are of what Transform returns. Other kinds may use the same names.
	Indexers cache.Indexers
	// Optional is whether the kind runs without the resource while the controller has no permission to watch it. That is
	// known once the API has refused the watch for permission.LacksAfter; the kind starts that much later.
	Optional bool
}

// Transformed returns a Transform that keeps of the objects of one type what another function makes of them.
func Transformed[T runtime.Object, K any](kept func(T) K) cache.TransformFunc {
	return func(obj any) (any, error) {
		if object, ok := obj.(T); ok {
			return kept(object), nil
		}
		return obj, nil
	}
}

// Informer is what one kind sees of a watch: the objects that it needs, as its transform returns them.
type Informer struct {
	Need
	kind     string
	handlers []cache.ResourceEventHandler
	// unreadable is called with placeholders; it may be nil.
	unreadable func(Placeholder)

	// shared follows the resource for all kinds that need it, and number is the place of this one among them.
	shared cache.SharedIndexInformer
	number int
}

// AddEventHandler adds a handler, before the watch is built. When the watch has missed a deletion, the handler gets the
// last state of the object that is known, and no cache.DeletedFinalStateUnknown.
func (i *Informer) AddEventHandler(handler cache.ResourceEventHandler) {
	i.handlers = append(i.handlers, handler)
}

// HasSynced returns whether the cache is filled.
func (i *Informer) HasSynced() bool { return i.shared != nil && i.shared.HasSynced() }

// Refused returns whether the cache is not filled because the controller has no permission to watch the resource. If it
// is neither filled nor refused, nothing is known of the resource.
func (i *Informer) Refused() bool { return !i.HasSynced() && i.failure.denials.Last(time.Now()) }

// LastStoreSyncResourceVersion returns the version that the cache has come to.
func (i *Informer) LastStoreSyncResourceVersion() string {
	return i.shared.GetIndexer().LastStoreSyncResourceVersion()
}

// GetByKey returns an object; nil if there is none.
func (i *Informer) GetByKey(key string) (any, error) {
	obj, _, err := i.shared.GetIndexer().GetByKey(key)
	return i.part(obj), err
}

// ByKey returns an object that the transform of the kind keeps as *T; nil if there is none.
func ByKey[T any](i *Informer, key cache.ObjectName) (*T, error) {
	obj, err := i.GetByKey(key.String())
	if err != nil || obj == nil {
		return nil, err
	}
	object, ok := obj.(*T)
	if !ok {
		return nil, fmt.Errorf("reading %s %s: the cache holds a %T", i.Resource.Resource, key, obj)
	}
	return object, nil
}

// ByIndex returns the objects for which an index of the kind has the value.
func (i *Informer) ByIndex(index, value string) ([]any, error) {
	objs, err := i.shared.GetIndexer().ByIndex(i.indexName(index), value)
	return i.parts(objs), err
}

// List returns all objects.
func (i *Informer) List() []any { return i.parts(i.shared.GetIndexer().List()) }

// GetIndexer returns the cache, which other kinds may share: it holds their parts too.
func (i *Informer) GetIndexer() cache.Indexer { return i.shared.GetIndexer() }

func (i *Informer) indexName(index string) string { return i.kind + "/" + index }

// part returns what the kind sees of an object in the cache; nil if it does not see it.
func (i *Informer) part(obj any) any {
	if p, ok := obj.(*placeholder); ok {
		obj = p.kept
	}
	if all, ok := obj.(*parted); ok {
		return all.parts[i.number]
	}
	return obj
}

// parts does so for many. It may change the list.
func (i *Informer) parts(objs []any) []any {
	seen := objs[:0]
	for _, obj := range objs {
		if part := i.part(obj); part != nil {
			seen = append(seen, part)
		}
	}
	return seen
}

func (i *Informer) indexed(index cache.IndexFunc) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if part := i.part(obj); part != nil {
			return index(part)
		}
		return nil, nil
	}
}

// handle returns a handler of the shared informer that calls the one of the kind for what the kind sees. To the
// kind, an object that it needs no more is deleted.
func (i *Informer) handle(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if part := i.part(obj); part != nil {
				handler.OnAdd(part, initial)
			}
		},
		UpdateFunc: func(before, after any) {
			switch was, is := i.part(before), i.part(after); {
			case was != nil && is != nil:
				handler.OnUpdate(was, is)
			case is != nil:
				handler.OnAdd(is, false)
			case was != nil:
				handler.OnDelete(was)
			}
		},
		DeleteFunc: func(obj any) {
			if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = missed.Obj
			}
			if part := i.part(obj); part != nil {
				handler.OnDelete(part)
			}
		},
	}
}

// sharedWatch is one watch, and the cache that it fills.
type sharedWatch struct {
	Resource
	label     string
	informers []*Informer
	shared    cache.SharedIndexInformer
	// failures are why watches ended.
	failures *logging.Repeats
}

func (w *sharedWatch) build() error {
	indexers := cache.Indexers{indexUnreadable: unreadableIn}
	for n, i := range w.informers {
		i.number = n
		for name, index := range i.Indexers {
			indexers[i.indexName(name)] = i.indexed(index)
		}
	}
	w.failures = logging.NewRepeats(clock.RealClock{})
	w.shared = cache.NewSharedIndexInformerWithOptions(w.source(w.label), w.example, cache.SharedIndexInformerOptions{Indexers: indexers})
	transform := w.transform()
	if w.mayBeUnreadable() {
		transform = w.keeping(transform)
	}
	errs := []error{w.shared.SetTransform(transform), w.shared.SetWatchErrorHandlerWithContext(w.logWatchError)}
	for _, i := range w.informers {
		i.shared, i.failure = w.shared, w.failure // another kind may have declared the resource that is watched
		for _, handler := range i.handlers {
			_, err := w.shared.AddEventHandler(i.handle(handler))
			errs = append(errs, err)
		}
		if i.unreadable != nil {
			_, err := w.shared.AddEventHandler(i.handleUnreadable())
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// transform returns what makes an object in the cache of what the API returns: for a single kind that needs all objects
// what the kind keeps.
func (w *sharedWatch) transform() cache.TransformFunc {
	if len(w.informers) == 1 && w.informers[0].Only == nil && w.informers[0].Label == w.label {
		return w.informers[0].Transform
	}
	return w.split
}

// parted is what the cache keeps of an object that several kinds watch.
type parted struct {
	namespace, name string
	version         uint64
	// parts are what each kind sees; nil for a kind that does not need the object.
	parts []any
}

var _ metav1.ObjectMetaAccessor = &parted{}

// GetObjectMeta returns what the cache needs to know of an object.
func (p *parted) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, ResourceVersion: strconv.FormatUint(p.version, 10)}
}

// split makes the part of each kind. It accepts its own results.
func (w *sharedWatch) split(obj any) (any, error) {
	object, ok := obj.(runtime.Object)
	if !ok {
		return obj, nil
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, fmt.Errorf("splitting %T: %w", obj, err)
	}
	all := &parted{namespace: accessor.GetNamespace(), name: accessor.GetName(), parts: make([]any, len(w.informers))}
	all.version, _ = strconv.ParseUint(accessor.GetResourceVersion(), 10, 64) // a version that is not well-formed counts as absent
	var needed []*Informer
	for _, i := range w.informers {
		if i.needs(object, accessor.GetLabels()) {
			needed = append(needed, i)
		}
	}
	for n, i := range needed {
		own := object
		if n < len(needed)-1 { // the last one may have the object itself
			own = object.DeepCopyObject()
		}
		if all.parts[i.number], err = i.Transform(own); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// watchLabel returns the label by which the watch selects objects.
func (i *Informer) watchLabel() string {
	if i.Unlabeled {
		return ""
	}
	return i.Label
}

// needs returns whether the kind needs the object.
func (i *Informer) needs(object runtime.Object, labels map[string]string) bool {
	_, carried := labels[i.Label]
	return (carried || i.Label == "") && (i.Only == nil || i.Only(object))
}

// logWatchError replaces the library's handler, which logs an outage of a server as an error of this program.
func (w *sharedWatch) logWatchError(ctx context.Context, r *cache.Reflector, err error) {
	w.failures.Retried(klog.FromContext(ctx), logging.General, err, "Watch ended, trying again", "type", r.TypeDescription())
}
