// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// Objects is a client of the objects of one kind in one namespace.
type Objects struct{ dynamic.ResourceInterface }

var _ children.Client[*unstructured.Unstructured] = Objects{}

// ObjectsOf returns the client of a resource in a namespace.
func ObjectsOf(client dynamic.Interface, resource schema.GroupVersionResource, namespace string) Objects {
	return Objects{client.Resource(resource).Namespace(namespace)}
}

// Create implements children.Client.
func (c Objects) Create(ctx context.Context, object *unstructured.Unstructured,
	options metav1.CreateOptions) (*unstructured.Unstructured, error) {
	return c.ResourceInterface.Create(ctx, object, options)
}

// Get implements children.Client.
func (c Objects) Get(ctx context.Context, name string, options metav1.GetOptions) (*unstructured.Unstructured, error) {
	return c.ResourceInterface.Get(ctx, name, options)
}

// Delete implements children.Client.
func (c Objects) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return c.ResourceInterface.Delete(ctx, name, options)
}

// Patch implements children.Client.
func (c Objects) Patch(
	ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string,
) (*unstructured.Unstructured, error) {
	return c.ResourceInterface.Patch(ctx, name, kind, data, options, subresources...)
}

// Kind names the objects of one kind.
type Kind struct {
	// Resource is the name in paths, such as podgroups, and Kind the one in objects, such as PodGroup.
	Resource, Kind string
}

// PodGroups are the groups of pods of every scheduler.
var PodGroups = Kind{Resource: "podgroups", Kind: "PodGroup"}

// Workloads describe the groups of one owner to the scheduler of Kubernetes.
var Workloads = Kind{Resource: "workloads", Kind: "Workload"}

// Need returns what an informer needs for the objects of a kind that carry a label.
func Need(server *informers.Server, client dynamic.Interface, version schema.GroupVersion, kind Kind, label string) informers.Need {
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(version.WithKind(kind.Kind))
	resource := version.WithResource(kind.Resource)
	return informers.Need{Resource: informers.NewResource(server, resource, example, client, client.Resource(resource)), Label: label}
}

// indexController is the index of objects by the UID of their controller.
const indexController = "controller"

func controllerOf(obj any) ([]string, error) {
	if object, ok := obj.(metav1.Object); ok {
		if uid := uidOfController(object); uid != "" {
			return []string{string(uid)}, nil
		}
	}
	return nil, nil
}

// uidOfController returns the UID of the controller of an object; "" if it has none.
func uidOfController(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

// trim drops what no decision uses: the status changes all the time. It accepts its own results.
func trim(obj any) (any, error) {
	full, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	out := &unstructured.Unstructured{Object: map[string]any{"spec": full.Object["spec"]}}
	out.SetGroupVersionKind(full.GroupVersionKind())
	out.SetNamespace(full.GetNamespace())
	out.SetName(full.GetName())
	out.SetUID(full.GetUID())
	out.SetResourceVersion(full.GetResourceVersion())
	out.SetLabels(full.GetLabels())
	out.SetOwnerReferences(full.GetOwnerReferences())
	out.SetDeletionTimestamp(full.GetDeletionTimestamp())
	return out, nil
}

func (w *Watch) changed(obj any) {
	if object, ok := obj.(metav1.Object); ok {
		w.Changed(object)
	}
}

// updated is called with another object of the same name if the watch was interrupted. Then its former owner has lost one.
func (w *Watch) updated(before, after any) {
	was, wasObject := before.(metav1.Object)
	is, isObject := after.(metav1.Object)
	if wasObject && isObject && uidOfController(was) != uidOfController(is) {
		w.Changed(was)
	}
	w.changed(after)
}
