// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Object is what the preview of an object of any kind says.
type Object struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Exists reports that the cluster has an object of the kind and the name. Then the manifest leads to Changes, and nothing is said of
	// children.
	Exists bool `json:"exists"`
	// Verdict is the verdict of the server on the object itself. A new object that is refused has nothing but notes after it.
	Verdict Verdict `json:"verdict"`
	// Changes are the fields that the manifest changes in an object that exists. If the change is refused, they are the fields that it would
	// change, and the fields that the server does not accept have the effect Refused.
	Changes []Change `json:"changes,omitempty"`
	// Notes say what else a user should know.
	Notes []string `json:"notes,omitempty"`

	// Live is the object in the cluster, and Next what the manifest makes of it. Each is nil if there is none.
	Live *unstructured.Unstructured `json:"-"`
	Next *unstructured.Unstructured `json:"-"`
}

// Changed implements View.
func (o *Object) Changed() bool { return !o.Exists || len(o.Changes) > 0 }

// Objects implements View.
func (o *Object) Objects() (live, next *unstructured.Unstructured) { return o.Live, o.Next }

func (o *Object) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// describe fills in what each change does.
func (o *Object) describe(effect func(field string) (Effect, string)) {
	for i := range o.Changes {
		c := &o.Changes[i]
		c.Effect, c.Text = effect(c.Field)
	}
}

// objectOf is what there is to say of an object of a manifest before the cluster is asked.
func objectOf(kind cli.Kind, object *unstructured.Unstructured) Object {
	o := Object{Kind: kind.Title, Name: object.GetName(), Namespace: object.GetNamespace()}
	if o.Name == "" && object.GetGenerateName() != "" {
		o.Name = object.GetGenerateName() + "*"
	}
	return o
}

// previewing is the preview of one object of a kind, whose Go type is O. It has what the kinds do not share.
type previewing[O any] struct {
	*Session
	kind cli.Kind
	out  *Object
	// describeNew describes a new object that the server accepts, and describeUpdate an object whose change it accepts.
	describeNew    func(context.Context, *O) error
	describeUpdate func(live, next *O)
	// describeRefused describes an object whose change the server refuses; nil if there is nothing to say.
	describeRefused func(live *O)
}

// run previews the object.
func (p previewing[O]) run(ctx context.Context, object *unstructured.Unstructured) error {
	if name := object.GetName(); name != "" {
		live, err := p.get(ctx, p.kind, object.GetNamespace(), name)
		switch {
		case err == nil:
			return p.runExisting(ctx, live, object)
		case cli.IsNotServed(err), !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return err
		}
	}
	return p.runNew(ctx, object)
}

// runNew previews an object that does not exist.
func (p previewing[O]) runNew(ctx context.Context, object *unstructured.Unstructured) (err error) {
	out := p.out
	out.Verdict, err = ask(ctx, sameField, func(ctx context.Context) (err error) {
		out.Next, err = p.create(ctx, p.kind, object)
		return err
	})
	if err != nil {
		return err
	}
	if out.Verdict.Answer != Accepted {
		out.Next = nil
		out.Notes = append(out.Notes, p.manifest.refuse(&out.Verdict, out.Namespace)...)
		return nil
	}
	next, err := read[O](p.kind, out.Next)
	if err != nil {
		return err
	}
	if object.GetName() == "" {
		out.Notes = append(out.Notes, fmt.Sprintf("metadata.generateName: each creation generates another name; %s stands for it in names "+
			"of children",
			out.Next.GetName()))
	}
	return p.describeNew(ctx, next)
}

// runExisting previews what the manifest changes of an object that exists.
func (p previewing[O]) runExisting(ctx context.Context, live, object *unstructured.Unstructured) error {
	out := p.out
	out.Exists, out.Live = true, live
	change, merged, err := patchOf(live, object, p.manager, *new(O))
	if err != nil {
		return err
	}
	next, notes, verdict, err := p.askPatch(ctx, p.kind, object, change)
	if err != nil {
		return err
	}
	out.Verdict, out.Notes = verdict, append(out.Notes, notes...)
	accepted := out.Verdict.Answer == Accepted
	if !accepted {
		out.Verdict.Answer = Refused // it is the user who changes the object
		next = merged
	}
	out.Next, out.Changes = next, changesBetween(live, next)
	if !accepted {
		refusedFields(out.Changes, out.Verdict.Problems)
		if p.describeRefused == nil {
			return nil
		}
	}
	before, err := read[O](p.kind, live)
	if err != nil {
		return err
	}
	if !accepted {
		p.describeRefused(before)
		return nil
	}
	after, err := read[O](p.kind, next)
	if err != nil {
		return err
	}
	p.describeUpdate(before, after)
	return nil
}

// read decodes what the server would store.
func read[O any](kind cli.Kind, object *unstructured.Unstructured) (*O, error) {
	if version := object.GroupVersionKind().GroupVersion(); version != kind.GroupVersion {
		return nil, fmt.Errorf("apiVersion: must be %s, not %s", kind.GroupVersion, version)
	}
	out := new(O)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
		return nil, fmt.Errorf("reading the answer of the server: %w", err)
	}
	return out, nil
}

// askPatch asks the server for the change. An apply that other managers' fields forbid is asked for again, by force, with a note.
func (s *Session) askPatch(ctx context.Context, kind cli.Kind, object *unstructured.Unstructured,
	change patch) (next *unstructured.Unstructured, notes []string, v Verdict, err error) {
	question := func(ctx context.Context) (err error) {
		next, err = s.patch(ctx, kind, object, change)
		if apierrors.IsConflict(err) && change.kind == types.ApplyPatchType {
			notes = append(notes, "kubectl apply --server-side needs --force-conflicts: "+err.Error())
			change.force = true
			next, err = s.patch(ctx, kind, object, change)
		}
		return err
	}
	v, err = ask(ctx, sameField, question)
	return next, notes, v, err
}

// lookAround returns which names of Jobs are taken, and reads the quotas. What the user may not read is left out, with a note.
func (s *Session) lookAround(ctx context.Context, out *Object) (names sets.Set[string], err error) {
	if names, err = s.jobNames(ctx, out.Namespace); err != nil {
		if names = nil; !apierrors.IsForbidden(err) {
			return nil, err
		}
		out.note("whether names of Jobs are taken is not known: %v", err)
	}
	return names, s.readQuotas(ctx, out)
}

// readQuotas reads the quotas of the namespace, once.
func (s *Session) readQuotas(ctx context.Context, out *Object) (err error) {
	if _, known := s.quotas[out.Namespace]; known {
		return nil
	}
	if s.quotas[out.Namespace], err = s.cluster.quotas(ctx, out.Namespace); err != nil {
		if delete(s.quotas, out.Namespace); !apierrors.IsForbidden(err) {
			return err
		}
		out.note("whether the quotas are large enough is not known: %v", err)
		return nil
	}
	s.quotas[out.Namespace] = s.manifest.quotas(out.Namespace, s.quotas[out.Namespace])
	return nil
}
