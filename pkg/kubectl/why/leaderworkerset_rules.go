// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// What keeps groups from being ready: placement, gangs, restarts, the order of the start, updates.

// exclusiveKey is the label of nodes whose values are the domains of replicas; "" without exclusive placement.
func (d *diagnosis) exclusiveKey() string {
	return d.Set.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey]
}

// replicasWith returns the replicas for which a question is answered with yes, and their indexes as words.
func (d *diagnosis) replicasWith(is func(*snapshot.Replica) bool) (replicas []*snapshot.Replica, names string) {
	var indexes []string
	for _, replica := range d.Replicas.Replicas {
		if is(replica) {
			replicas, indexes = append(replicas, replica), append(indexes, fmt.Sprint(replica.Index))
		}
	}
	if len(replicas) == 1 {
		return replicas, "group " + indexes[0]
	}
	return replicas, "groups " + some(indexes, maxFacts)
}

// noFreeDomain looks for leaders that find no domain of their own.
func noFreeDomain(d *diagnosis) []Finding {
	key := d.exclusiveKey()
	if key == "" {
		return nil
	}
	replicas, names := d.replicasWith(func(g *snapshot.Replica) bool {
		return g.Leader != nil && snapshot.PodUnschedulable(g.Leader) &&
			strings.Contains(snapshot.PodCondition(g.Leader, corev1.PodScheduled).Message, "anti-affinity")
	})
	if len(replicas) == 0 {
		return nil
	}
	leader := replicas[0].Leader
	c := snapshot.PodCondition(leader, corev1.PodScheduled)
	verb := "finds"
	if len(replicas) > 1 {
		verb = "find"
	}
	return []Finding{{
		Cause: NoFreeDomain,
		Summary: fmt.Sprintf("%s %s no free domain: exclusive placement gives each group the nodes of one value of the label %s alone", names,
			verb, key),
		Evidence: []Fact{{Object: object("pod", leader.Name), Text: "has no node: " + oneLine(c.Message), Time: at(c.LastTransitionTime.Time)}},
		Commands: []string{"kubectl get nodes -L " + key, d.kubectl("get pods -l %s -o wide", leaderworkersetv1.GroupKeyLabelKey)},
	}}
}

// labelMissing looks for leaders on nodes without the label that says where their workers go.
func labelMissing(d *diagnosis) []Finding {
	key := d.exclusiveKey()
	replicas, names := d.replicasWith(func(g *snapshot.Replica) bool {
		if key == "" || g.Leader == nil || g.Workers != nil || d.Replicas.Size(g) == 1 {
			return false
		}
		node := d.Nodes[g.Leader.Spec.NodeName]
		return node != nil && node.Labels[key] == ""
	})
	if len(replicas) == 0 {
		return nil
	}
	leader := replicas[0].Leader
	return []Finding{{
		Cause: TopologyLabelMissing,
		Summary: fmt.Sprintf("the workers of %s are not created: the node %s of the leader has no label %s, by which exclusive placement "+
			"chooses their nodes", names, leader.Spec.NodeName, key),
		Evidence: []Fact{{Object: object("node", leader.Spec.NodeName), Text: "has no label " + key},
			{Object: object("pod", leader.Name), Text: "runs there"}},
		Commands: []string{"kubectl get nodes -L " + key, fmt.Sprintf("kubectl label node %s %s=VALUE", leader.Spec.NodeName, key)},
	}}
}

// gangs looks at the PodGroups of schedulers that have a kind of their own.
func gangs(d *diagnosis) []Finding {
	var findings []Finding
	for i := range gangSchedulers {
		scheduler := &gangSchedulers[i]
		found := d.Gangs[scheduler.product]
		for _, name := range sortedKeys(found) {
			if f := d.gang(scheduler, name, found[name]); f != nil {
				findings = append(findings, *f)
			}
		}
	}
	return findings
}

// gang says what a PodGroup waits for; nil if it does not.
func (d *diagnosis) gang(scheduler *gangScheduler, name string, gang *unstructured.Unstructured) *Finding {
	f := &Finding{Cause: PodGroupWaits, Commands: []string{d.kubectl("describe podgroups.%s %s", scheduler.resource.Group, name)}}
	if gang == nil {
		f.Summary = fmt.Sprintf("the pods wait for the pod group %s of %s, which does not exist", name, scheduler.product)
		f.Evidence = []Fact{{Object: object("podgroup", name), Text: "does not exist"}}
		return f
	}
	phase := text(gang, "status", "phase")
	if !slices.Contains(scheduler.waits, phase) {
		return nil
	}
	f.Summary = fmt.Sprintf("the pod group %s of %s is %s, and its pods are only scheduled together", name, scheduler.product,
		cmp.Or(phase, "new"))
	f.Evidence = []Fact{{Object: object("podgroup", name), Text: "status.phase is " + cmp.Or(phase, "not set")}}
	if c := conditionOf(gang, "Unschedulable"); c != nil {
		f.Summary += ": " + oneLine(c.Message)
		f.Evidence = append(f.Evidence, conditionFact(object("podgroup", name), c))
	}
	return f
}

// replicaFact is what is on record of a replica.
func (d *diagnosis) replicaFact(s *leaderworkersetv1.GroupStatus) Fact {
	f := Fact{Object: d.set(), Text: fmt.Sprintf("group %d was recreated after %s", s.Index, count(int(s.Restarts), "failure"))}
	if s.LastRestartTime != nil {
		f.Time = s.LastRestartTime
	}
	return f
}

// lastFailure is why a replica failed, in words and as evidence.
func lastFailure(s *leaderworkersetv1.GroupStatus) (words string, facts []Fact) {
	if s.FirstCause == nil {
		return "", nil
	}
	return "; the last failure: " + describeCause(s.FirstCause), []Fact{causeFact(s.FirstCause)}
}

// replicaLimit says which replicas have used up their restarts.
func replicaLimit(d *diagnosis) []Finding {
	c := meta.FindStatusCondition(d.Set.Status.Conditions, leaderworkersetv1.ConditionFailed)
	f := Finding{
		Cause:    MaxRestartsReached,
		Summary:  oneLine(c.Message),
		Evidence: []Fact{conditionFact(d.set(), c)},
		Commands: []string{d.plugin("tree %s", d.ref())},
	}
	var failed []string
	for i := range d.Set.Status.Groups {
		s := &d.Set.Status.Groups[i]
		if !s.Failed {
			continue
		}
		if failed = append(failed, fmt.Sprint(s.Index)); len(failed) > 1 {
			continue
		}
		words, facts := lastFailure(s)
		f.Summary = fmt.Sprintf("group %d has used up its %s (maxGroupRestarts) and is left as it is%s", s.Index,
			count(int(s.Restarts), "restart"), words)
		f.Evidence = append(append(facts, d.replicaFact(s)), f.Evidence...)
		f.Commands = append(f.Commands, d.plugin("restart %s --group %d", d.ref(), s.Index))
	}
	if len(failed) > 1 {
		f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: "so have others: groups " + some(failed[1:], maxFacts)})
	}
	return []Finding{f}
}

// waitsForBackoff returns whether a replica that failed is recreated later.
func (d *diagnosis) waitsForBackoff(s *leaderworkersetv1.GroupStatus) bool {
	return s.RestartAt != nil && s.RestartAt.After(d.Now)
}

// replicaBackoff looks for replicas that failed and are recreated later.
func replicaBackoff(d *diagnosis) []Finding {
	var waiting []*leaderworkersetv1.GroupStatus
	for i := range d.Set.Status.Groups {
		if s := &d.Set.Status.Groups[i]; d.waitsForBackoff(s) {
			waiting = append(waiting, s)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	worst := slices.MaxFunc(waiting, func(a, b *leaderworkersetv1.GroupStatus) int { return cmp.Compare(a.RestartsInRow, b.RestartsInRow) })
	words, facts := lastFailure(worst)
	f := Finding{
		Cause: GroupBackoff,
		Summary: fmt.Sprintf("group %d failed %s in a row and is recreated in %s (groupRestartBackoff)%s",
			worst.Index, count(int(worst.RestartsInRow), "time"), span(worst.RestartAt.Time, d.Now), words),
		Evidence: append(facts, d.replicaFact(worst)),
		Commands: []string{d.plugin("timeline %s", d.ref()), d.plugin("restart %s --group %d", d.ref(), worst.Index)},
	}
	if more := len(waiting) - 1; more > 0 {
		f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: fmt.Sprintf("%s more wait likewise", count(more, "group"))})
	}
	return []Finding{f}
}

// replicaRestarts looks for replicas that are recreated again and again.
func replicaRestarts(d *diagnosis) []Finding {
	replicas, _ := d.replicasWith(func(g *snapshot.Replica) bool {
		s := g.Status
		return s != nil && s.Restarts > 0 && s.LastRestartTime != nil && d.Now.Sub(s.LastRestartTime.Time) < recently && !d.waitsForBackoff(s) &&
			!g.Ready(d.Replicas.Size(g))
	})
	if len(replicas) == 0 {
		return nil
	}
	worst := slices.MaxFunc(replicas, func(a, b *snapshot.Replica) int { return cmp.Compare(a.Restarts(), b.Restarts()) })
	words, facts := lastFailure(worst.Status)
	f := Finding{
		Cause: GroupRestarts,
		Summary: fmt.Sprintf("group %d is not ready and was recreated after %s, last %s%s",
			worst.Index, count(worst.Restarts(), "failure"), ago(d.Now, worst.Status.LastRestartTime.Time), words),
		Evidence: append(facts, d.replicaFact(worst.Status)),
		Commands: []string{d.plugin("logs %s --group %d", d.ref(), worst.Index), d.plugin("timeline %s", d.ref())},
	}
	if d.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts == nil && d.Set.Spec.GroupRestartBackoff == nil {
		f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: "has neither maxGroupRestarts nor groupRestartBackoff: groups are " +
			"recreated in a loop"})
	}
	if more := len(replicas) - 1; more > 0 {
		f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: fmt.Sprintf("%s more were recreated and are not ready",
			count(more, "group"))})
	}
	return []Finding{f}
}

// leaderNotReady looks for replicas whose workers wait for the leader.
func leaderNotReady(d *diagnosis) []Finding {
	if d.Set.Spec.StartupPolicy != leaderworkersetv1.StartupPolicyLeaderReady {
		return nil
	}
	replicas, names := d.replicasWith(func(g *snapshot.Replica) bool {
		return g.Leader != nil && g.Leader.DeletionTimestamp == nil && g.Workers == nil && d.Replicas.Size(g) > 1 && !snapshot.PodReady(g.Leader)
	})
	if len(replicas) == 0 {
		return nil
	}
	leader := replicas[0].Leader
	f := Finding{
		Cause:   LeaderNotReady,
		Summary: fmt.Sprintf("the workers of %s are created once the leader is ready (startupPolicy LeaderReady)", names),
		Evidence: []Fact{{Object: object("pod", leader.Name), Text: "is " + snapshot.PodState(leader) + ", not ready",
			Time: at(leader.CreationTimestamp.Time)}},
		Commands: []string{d.kubectl("describe pod %s", leader.Name), d.plugin("logs %s --group %d --worker 0", d.ref(), replicas[0].Index)},
	}
	return []Finding{f}
}
