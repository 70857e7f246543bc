// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// previewer previews one set.
type previewer struct {
	*Session
	out Set
	// gates are the feature gates of the server.
	gates gates.Gates
	// placement is whether the server has exclusive placement.
	placement bool

	js       *jobsetv1alpha2.JobSet
	children plan.Children
	names    sets.Set[string]
	// pods are the first ones of the replicatedJobs, as the cluster would have them; nil where there is none.
	pods []*corev1.Pod
}

// JobSet is the Previewer of JobSets.
func JobSet(ctx context.Context, s *Session, object *unstructured.Unstructured) (View, error) {
	p := &previewer{Session: s, out: Set{Kind: cli.JobSet.Title, Name: object.GetName(), Namespace: object.GetNamespace()}}
	if err := p.run(ctx, object); err != nil {
		return nil, err
	}
	return &p.out, nil
}

func (p *previewer) run(ctx context.Context, object *unstructured.Unstructured) error {
	if name := object.GetName(); name != "" {
		live, err := p.get(ctx, cli.JobSet, object.GetNamespace(), name)
		switch {
		case err == nil:
			return p.runExisting(ctx, live, object)
		case cli.IsNotServed(err), !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return err
		}
	}
	return p.runNew(ctx, object)
}

// readSet decodes what the server would store.
func readSet(object *unstructured.Unstructured) (*jobsetv1alpha2.JobSet, error) {
	if version := object.GroupVersionKind().GroupVersion(); version != cli.JobSet.GroupVersion {
		return nil, fmt.Errorf("apiVersion: must be %s, not %s", cli.JobSet.GroupVersion, version)
	}
	js := &jobsetv1alpha2.JobSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, js); err != nil {
		return nil, fmt.Errorf("reading the answer of the server: %w", err)
	}
	return js, nil
}

// runNew previews a set that does not exist.
func (p *previewer) runNew(ctx context.Context, object *unstructured.Unstructured) (err error) {
	p.out.Verdict, err = ask(ctx, sameField, func(ctx context.Context) (err error) {
		p.out.Next, err = p.create(ctx, cli.JobSet, object)
		return err
	})
	if err != nil {
		return err
	}
	if p.out.Verdict.Answer != Accepted {
		p.refuseSet(object)
		return nil
	}
	if p.js, err = readSet(p.out.Next); err != nil {
		return err
	}
	p.out.Name = p.js.Name
	note, err := p.readGates(ctx)
	if err != nil {
		return err
	}
	p.children = plan.ChildrenOf(p.js, p.gates)
	for i := range p.js.Spec.ReplicatedJobs {
		rj := nameReplicatedJob(p.js, &p.js.Spec.ReplicatedJobs[i], p.children.Jobs[i])
		p.out.ReplicatedJobs = append(p.out.ReplicatedJobs, rj)
		p.out.Jobs += rj.Jobs
		p.out.Pods += rj.Pods
	}
	p.out.Notes = notes(p.js)
	if text := p.manifest.limitRangeNote(p.out.Namespace); text != "" {
		p.out.Notes = append(p.out.Notes, text)
	}
	if note != "" {
		p.out.Notes = append(p.out.Notes, note)
	}
	p.previewPlacement(ctx, note == "")
	p.previewScheduling(ctx)
	if err := p.lookAround(ctx); err != nil {
		return err
	}
	if err := p.askAll(ctx); err != nil {
		return err
	}
	if err := p.askReferences(ctx); err != nil {
		return err
	}
	p.out.Quota = countQuota(p.quotas[p.out.Namespace], p.usage())
	return nil
}

// refuseSet completes the refusal of a new set. It is the user who creates the set, so that a missing permission is a refusal, too;
// and the namespace may be one that the manifest creates, in which nothing can be asked before.
func (p *previewer) refuseSet(object *unstructured.Unstructured) {
	p.out.Next = nil
	p.out.Notes = append(p.out.Notes, p.manifest.refuse(&p.out.Verdict, object.GetNamespace())...)
}

// refuse completes the refusal of a new object, and returns what there is to note about it.
func (m manifest) refuse(v *Verdict, namespace string) []string {
	if m.has("Namespace", "", namespace) && slices.ContainsFunc(v.Problems, func(text string) bool {
		return strings.Contains(text, fmt.Sprintf("namespaces %q not found", namespace))
	}) {
		*v = Verdict{Answer: Unknown}
		return []string{fmt.Sprintf("the manifest creates the namespace %s: create it first to preview what is in it", namespace)}
	}
	v.Answer = Refused
	return nil
}

// notes say what the cluster does not say about the set.
func notes(js *jobsetv1alpha2.JobSet) []string {
	var out []string
	if manager := ptr.Deref(js.Spec.ManagedBy, ""); manager != "" && manager != jobsetv1alpha2.JobSetControllerName {
		return append(out, fmt.Sprintf("the controller %q runs the set, which spec.managedBy names: what it creates is not known here", manager))
	}
	if ptr.Deref(js.Spec.Suspend, false) {
		out = append(out, "the set is suspended: its Jobs are created suspended, and have pods once the set is resumed")
	}
	return out
}

// lookAround reads which names are taken, and the quotas. What the user may not read is left out, with a note.
func (p *previewer) lookAround(ctx context.Context) (err error) {
	if p.names, err = p.jobNames(ctx, p.out.Namespace); err != nil {
		if p.names = nil; !apierrors.IsForbidden(err) {
			return err
		}
		p.out.Notes = append(p.out.Notes, "whether names of Jobs are taken is not known: "+err.Error())
	}
	return p.readQuotas(ctx)
}

// readQuotas reads the quotas of the namespace, once.
func (p *previewer) readQuotas(ctx context.Context) (err error) {
	if _, read := p.quotas[p.out.Namespace]; read {
		return nil
	}
	if p.quotas[p.out.Namespace], err = p.cluster.quotas(ctx, p.out.Namespace); err != nil {
		if delete(p.quotas, p.out.Namespace); !apierrors.IsForbidden(err) {
			return err
		}
		p.out.Notes = append(p.out.Notes, "whether the quotas are large enough is not known: "+err.Error())
		return nil
	}
	p.quotas[p.out.Namespace] = p.manifest.quotas(p.out.Namespace, p.quotas[p.out.Namespace])
	return nil
}

// gatesPath is the path of the document with the feature gates of the API server.
var gatesPath = path.Join("/apis", jobsetv1alpha2.SchemeGroupVersion.String(), "featuregates")

// gatesDocument is the document.
type gatesDocument struct {
	FeatureGates gates.Gates `json:"featureGates"`
}

// readGates reads the feature gates of the server. Where it does not say, they are off, which is the default of all
// that change Jobs, and there is a note.
func (p *previewer) readGates(ctx context.Context) (note string, err error) {
	var document gatesDocument
	err = p.document(ctx, gatesPath, &document)
	p.gates = document.FeatureGates
	p.placement, p.gates.ExclusivePlacement = p.gates.ExclusivePlacement,
		false // Jobs are shown as without placement, and their domains apart from them
	switch {
	case apierrors.IsNotFound(err):
		return "the server does not say which feature gates are on: all are taken to be off", nil
	case apierrors.IsForbidden(err):
		return "you may not read which feature gates are on, so all are taken to be off: " + err.Error(), nil
	case err != nil:
		return "", fmt.Errorf("reading the feature gates of the server: %w", err)
	}
	return "", nil
}
