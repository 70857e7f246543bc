// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// runExisting previews what the manifest changes of a set that exists.
func (p *previewer) runExisting(ctx context.Context, live, object *unstructured.Unstructured) error {
	p.out.Exists, p.out.Live = true, live
	change, merged, err := patchOf(live, object, p.manager, jobsetv1alpha2.JobSet{})
	if err != nil {
		return err
	}
	next, notes, verdict, err := p.askPatch(ctx, cli.JobSet, object, change)
	if err != nil {
		return err
	}
	p.out.Verdict, p.out.Notes = verdict, append(p.out.Notes, notes...)
	if p.out.Verdict.Answer != Accepted {
		p.out.Verdict.Answer = Refused // it is the user who changes the set
		p.out.Next, p.out.Changes = merged, changesBetween(live, merged)
		refusedFields(p.out.Changes, p.out.Verdict.Problems)
		return p.describeReplacement(live)
	}
	p.out.Next, p.out.Changes = next, changesBetween(live, next)
	return p.describeUpdate(live, next)
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

// describeUpdate explains what each change does.
func (p *previewer) describeUpdate(live, next *unstructured.Unstructured) error {
	before, err := readSet(live)
	if err != nil {
		return err
	}
	if p.js, err = readSet(next); err != nil {
		return err
	}
	p.out.Jobs, p.out.Pods = jobsOf(p.js), podsOf(p.js)
	if manager := ptr.Deref(p.js.Spec.ManagedBy, ""); manager != "" && manager != jobsetv1alpha2.JobSetControllerName {
		p.out.Notes = append(p.out.Notes, fmt.Sprintf("the controller %q runs the set, which spec.managedBy names: what changes do is not "+
			"known here", manager))
		return nil
	}
	u := update{live: before, next: p.js}
	for i := range p.out.Changes {
		c := &p.out.Changes[i]
		c.Effect, c.Text = u.effect(c.Field)
	}
	return nil
}

// describeReplacement says how large the set is that would have to be deleted and created again.
func (p *previewer) describeReplacement(live *unstructured.Unstructured) error {
	js, err := readSet(live)
	if err != nil {
		return err
	}
	p.out.Jobs, p.out.Pods = jobsOf(js), podsOf(js)
	return nil
}
