// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// podsPerPage is how many pods one request reads.
const podsPerPage = 500

// leadersShown returns whether the cache shows all leader pods, if it matters: the pods that a requested restart is
// about are found once, and the watch of pods may be behind that of sets, which another server answers. Of a set that
// is restarted in parts, the first look at the leaders has shown them all. The restart ends once, too: when none of the pods is shown,
// which may be because another process has found them, and this one has not seen them yet.
func (s *Syncer) leadersShown(ctx context.Context, obs *plan.Observed) (bool, error) {
	request := obs.Set.Status.Restart
	if request == nil || request.GroupsLeft != nil || obs.Leader == nil {
		return true, nil
	}
	known := sets.New[types.UID]()
	for i := range obs.Leaders {
		known.Insert(obs.Leaders[i].UID)
	}
	if request.Found && (len(request.Leaders) == 0 || known.HasAny(request.Leaders...)) {
		return true, nil
	}
	live, err := s.deps.Leaders(ctx, cache.MetaObjectToName(obs.Set))
	if err != nil {
		return false, fmt.Errorf("reading the leader pods of leaderworkerset %s/%s, which are to be restarted: %w", obs.Set.Namespace,
			obs.Set.Name, err)
	}
	unseen := slices.ContainsFunc(live, func(leader Child) bool {
		matters := !request.Found || slices.Contains(request.Leaders, leader.UID)
		return matters && leader.Controller == obs.Leader.UID && !known.Has(leader.UID)
	})
	return !unseen, nil
}

// readLeaders returns the leader pods of a set as the API has them.
func (c *Controller) readLeaders(ctx context.Context, key cache.ObjectName) (all []Child, err error) {
	options := metav1.ListOptions{
		LabelSelector: labels.Set{leaderworkersetv1.SetNameLabelKey: key.Name, leaderworkersetv1.WorkerIndexLabelKey: "0"}.String(),
		Limit:         podsPerPage,
	}
	for {
		page, err := c.Kube.CoreV1().Pods(key.Namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			pod := &page.Items[i]
			leader := Child{Ref: plan.Ref{Name: pod.Name, UID: pod.UID}}
			if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
				leader.Controller = owner.UID
			}
			all = append(all, leader)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return all, nil
		}
	}
}
