// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
)

const (
	// maxRefused is how many more patches of a pass may be refused than were accepted before it tries no other, and maxRefusedAgain how many
	// once pods were refused before: the reason is often the same for all pods of a group.
	maxRefused, maxRefusedAgain = 10, 2
)

// applied is what became of the patches of a pass.
type applied struct {
	// labeled is the number of pods that got the label, and skipped of those that were not tried, because others were refused.
	labeled, skipped int
	// refused are the pods that cannot be labeled, this time or when they were last tried.
	refused refusals
}

// apply labels the pods of the plan, in parallel. Applying the same plan twice does no harm. Pods that were refused before come last.
func (s *Syncer) apply(ctx context.Context, key cache.ObjectName, obs *snapshot, p plan.Plan) (applied, error) {
	if len(p.Label) == 0 {
		return applied{}, nil
	}
	var labeled, refused, skipped atomic.Int64
	var over atomic.Bool // the other patches are sure to be refused too
	known := s.memory.refusals(key, obs.prefix)
	pods, limit := known.last(p.Label), int64(maxRefused)
	if len(known) > 0 {
		limit = maxRefusedAgain
	}
	results := make([]result, len(pods))
	err := s.Runner.Do(ctx, key, len(pods), func(ctx context.Context, i int) error {
		if over.Load() || refused.Load()-labeled.Load() >= limit {
			skipped.Add(1)
			return children.ErrSkipped
		}
		done, err := s.label(ctx, key, obs, pods[i])
		switch {
		case done:
			labeled.Add(1)
		case answered(err) && !children.NotAsked(err):
			refused.Add(1)
		}
		if err != nil && children.RefusesAll(err) {
			over.Store(true)
		}
		results[i] = result{true, err}
		return err
	})
	if n := labeled.Load(); n > 0 {
		klog.FromContext(ctx).V(2).Info("Labeled the pods of a group that is ready",
			"family", obs.Prefix.Name, "labeled", n, "running", p.Running, "size", p.Size, "source", p.Source)
		if p.Labeled == 0 {
			countReady(obs, p)
		}
	}
	return applied{int(labeled.Load()), int(skipped.Load()), known.after(pods, results)}, err
}

// label gives one pod the label. A pod that is gone, or was replaced by another one of its name, is no error.
func (s *Syncer) label(ctx context.Context, key cache.ObjectName, obs *snapshot, pod plan.Ref) (done bool, err error) {
	prefix := obs.Prefix
	labeling := &metav1.ObjectMeta{Name: pod.Name, UID: pod.UID + types.UID("/"+prefix.Name)}
	if err := s.guard.Changing(obs.owner(key), labeling, "the label "+prefix.ReadyKey); err != nil {
		return false, err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "labels": map[string]string{prefix.ReadyKey: batchv1alpha1.PodGroupReadyValue},
	}})
	if err != nil {
		return false, err
	}
	var patched *corev1.Pod
	gone := false
	what := children.Request{Verb: "patch", Resource: podsOf(prefix), Name: pod.Name, UID: pod.UID}
	err = s.denials.Do(obs.owner(key), what, func() error {
		patched, err = s.Pods(key.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if gone = apierrors.IsNotFound(err) || replaced(err); gone { // no decision about this pod
			return nil
		}
		return err
	})
	switch {
	case err == nil && !gone:
		patchesTotal.WithLabelValues(prefix.Name, resultLabeled).Inc()
		s.Consistency.Wrote(key, podsOf(prefix), patched.ResourceVersion)
		s.guard.Changed(obs.owner(key), labeling, "the label "+prefix.ReadyKey)
		return true, nil
	case gone:
		patchesTotal.WithLabelValues(prefix.Name, resultGone).Inc()
		return false, nil
	}
	patchesTotal.WithLabelValues(prefix.Name, resultFailed).Inc()
	return false, fmt.Errorf("labeling pod %s/%s: %w", key.Namespace, pod.Name, err)
}

// replaced returns whether a patch was refused because the pod of the name has another UID.
func replaced(err error) bool {
	var status apierrors.APIStatus
	if apierrors.IsConflict(err) {
		return strings.Contains(strings.ToLower(err.Error()), "uid") // no version is given, so that only many writers at once are another reason
	}
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

// finish writes the status of the PodReadinessGroup, and sends events.
func (s *Syncer) finish(ctx context.Context, key cache.ObjectName, obs *snapshot, p plan.Plan) error {
	s.reportProblems(key, obs, p)
	if p.Status == nil {
		return nil
	}
	next := obs.Group.DeepCopy()
	next.Status = *p.Status
	written, found, err := children.StoreStatus(ctx, s.Host, s.Groups(key.Namespace), resourceGroups, "podreadinessgroup", obs.Group, next)
	if err != nil || !found {
		return err
	}
	s.memory.wrote(key, obs.Now)
	for _, event := range p.Events {
		children.SendEvent(s.Recorder, written, nil, event)
	}
	return nil
}
