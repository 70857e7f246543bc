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
	p := newPreviewer(s, object)
	return &p.out, p.previewing().run(ctx, object)
}

func newPreviewer(s *Session, object *unstructured.Unstructured) *previewer {
	return &previewer{Session: s, out: Set{Object: objectOf(cli.JobSet, object)}}
}

func (p *previewer) previewing() previewing[jobsetv1alpha2.JobSet] {
	return previewing[jobsetv1alpha2.JobSet]{
		Session: p.Session, kind: cli.JobSet, out: &p.out.Object,
		describeNew: p.describeNew, describeUpdate: p.describeUpdate, describeRefused: p.count,
	}
}

// describeNew describes the children of a new set.
func (p *previewer) describeNew(ctx context.Context, js *jobsetv1alpha2.JobSet) error {
	p.js = js
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
	if p.names, err = p.lookAround(ctx, &p.out.Object); err != nil {
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

// refuse completes the refusal of a new object, and returns what there is to note about it. It is the user who creates the object, so that
// a missing permission is a refusal, too; and the namespace may be one that the manifest creates, in which nothing can be asked before.
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
