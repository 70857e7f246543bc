// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// subject is the object that is explained, as rules see it which hold for every kind.
type subject interface {
	metav1.Object
	// manager is the controller that runs it instead of the built-in one; "" for the built-in one.
	manager() string
	// ended returns whether it has completed or failed permanently.
	ended() bool
	// observed returns whether a controller has acted on it.
	observed() bool
	// failedOn is the node of its last failure; "" if none is known.
	failedOn() string
}

// kind is a kind of subject: the words for it, and how it is read.
type kind struct {
	cli.Kind
	// noun is how sentences call it, and prefix what commands of the plugin have before its name.
	noun, prefix string
	// label is the label of its children and their pods, with its name.
	label string
	// children are what the object consists of, as sentences call them, and readChildren reads them and essential are the
	// sources without which most causes are not known.
	children     string
	readChildren func(*loader, context.Context)
	essential    []string
	// podsOfChildren means that pods are diagnosed with the children of the object, and are read only if the object cannot be.
	podsOfChildren bool
	// gate is the feature gate that turns on the kind in both programs; "" for one that is always on.
	gate string
	// top reports that `kubectl jobset top` takes it.
	top bool
	// controls is what its controller is for, as in "the controller of JobSets".
	controls string
	// queued are the objects that Kueue has to manage, and unqueue the commands that take the object out of its queue.
	queued  string
	unqueue func(*diagnosis) []string
	// read reads the object, and assemble keeps those of its children that matter.
	read     func(*loader, context.Context) error
	assemble func(*loader)
	// more are the readings that only this kind needs, once the object is known.
	more func(*loader) []func(context.Context)
	// list lists objects of the kind, of a namespace or of all.
	list func(context.Context, *loader, string, metav1.ListOptions) (runtime.Object, error)
}

// kind is the kind of the object; JobSet unless it was read as another one.
func (e *Evidence) kind() *kind {
	if e.of == nil {
		return setKind()
	}
	return e.of
}

// subject is the object; nil if it could not be read.
func (e *Evidence) subject() subject {
	switch {
	case e.JobSet != nil:
		return setSubject{e.JobSet}
	case e.Sequence != nil:
		return sequenceSubject{e.Sequence}
	case e.Set != nil:
		return leaderWorkerSetSubject{LeaderWorkerSet: e.Set}
	case e.RolesSet != nil:
		return rolesSubject{DisaggregatedSet: e.RolesSet}
	}
	return nil
}

// apiService is the name of the APIService of the kind.
func (k *kind) apiService() string { return k.GroupVersion.Version + "." + k.GroupVersion.Group }

// names returns the names of objects of the kind.
func (k *kind) names(ctx context.Context, l *loader, namespace string, options metav1.ListOptions) ([]types.NamespacedName, error) {
	list, err := k.list(ctx, l, namespace, options)
	if err != nil {
		return nil, err
	}
	var names []types.NamespacedName
	err = meta.EachListItem(list, func(item runtime.Object) error {
		o, err := meta.Accessor(item)
		if err == nil {
			names = append(names, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
		}
		return err
	})
	return names, err
}
