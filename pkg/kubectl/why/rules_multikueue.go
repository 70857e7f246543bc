// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// What Kueue runs in another cluster (MultiKueue). The Workload in this cluster names the other one, and says what the object waits for.

// inMultiKueue returns whether Kueue runs the object, or will run it, in another cluster.
func inMultiKueue(s subject) bool {
	return s != nil && s.manager() == jobsetv1alpha2.MultiKueueControllerName
}

// clusterOf returns the cluster in which Kueue runs the object of the Workload; "" for none yet.
func clusterOf(w *unstructured.Unstructured) string { return text(w, "status", "clusterName") }

// nominatedOf returns the clusters of which the first one with quota will run the object of the Workload.
func nominatedOf(w *unstructured.Unstructured) []string {
	if w == nil {
		return nil
	}
	names, _, _ := unstructured.NestedStringSlice(w.Object, "status", "nominatedClusterNames")
	return names
}

// readClusters reads the MultiKueueClusters that the Workload names, or all of them while it waits for one.
func (l *loader) readClusters(ctx context.Context, version string) {
	k := &l.e.Kueue
	names := nominatedOf(k.Workload)
	if name := clusterOf(k.Workload); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if cluster, _ := l.oneOf(ctx, "multikueueclusters", kueue(version, "multikueueclusters"), "", name); cluster != nil {
			k.Clusters = append(k.Clusters, cluster)
		}
	}
	if len(names) > 0 || !inMultiKueue(l.e.subject()) || !conditionTrue(conditionOf(k.Workload, kueueplan.ConditionQuotaReserved)) {
		return
	}
	list, err := l.Dynamic.Resource(kueue(version, "multikueueclusters")).List(ctx, metav1.ListOptions{Limit: maxWorkloads})
	if !l.got("multikueueclusters."+kueueGroup, err) {
		return
	}
	for i := range list.Items {
		k.Clusters = append(k.Clusters, &list.Items[i])
	}
}

// clusterUnreachable finds a worker cluster to which Kueue has no connection, and which the object needs.
func clusterUnreachable(d *diagnosis, _ string) *Finding {
	var f *Finding
	for _, cluster := range d.Kueue.Clusters {
		active := conditionOf(cluster, "Active")
		if active == nil || active.Status == metav1.ConditionTrue {
			continue
		}
		if f == nil {
			f = &Finding{Cause: WorkerClusterUnreachable, Summary: fmt.Sprintf("Kueue has no connection to the worker cluster %s: %s",
				cluster.GetName(), oneLine(active.Message))}
			if clusterOf(d.Kueue.Workload) == cluster.GetName() {
				f.Summary += fmt.Sprintf("; it was to run the %s, and the status here may be old", d.noun())
			}
		}
		f.Evidence = append(f.Evidence, conditionFact(object("multikueuecluster", cluster.GetName()), active))
		f.Commands = append(f.Commands, fmt.Sprintf("kubectl describe multikueueclusters.%s %s", kueueGroup, cluster.GetName()))
	}
	return f
}

// inWorkerCluster says in which cluster the object runs. What a suspended set waits for is said by its queue.
func inWorkerCluster(d *diagnosis) []Finding {
	w := d.Kueue.Workload
	waits := w != nil && !conditionTrue(conditionOf(w, kueueplan.ConditionAdmitted))
	if d.JobSet != nil && ptr.Deref(d.JobSet.Spec.Suspend, false) && (w != nil || d.JobSet.Labels[jobsetv1alpha2.QueueNameKey] != "") {
		return nil
	}
	if d.Sequence != nil && waits {
		return waitsInQueue(d, text(w, "spec", "queueName"))
	}
	f := d.runsElsewhere("the " + d.noun())
	f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: "spec.managedBy is " + jobsetv1alpha2.MultiKueueControllerName})
	findings := []Finding{f}
	if unreachable := clusterUnreachable(d, ""); unreachable != nil {
		findings = append(findings, *unreachable)
	}
	return findings
}

// runsElsewhere says in which cluster Kueue runs the object of the Workload.
func (d *diagnosis) runsElsewhere(what string) Finding {
	w := d.Kueue.Workload
	cluster := clusterOf(w)
	f := Finding{Cause: ManagedByOther}
	switch {
	case cluster != "":
		f.Summary = fmt.Sprintf("Kueue runs %s in the cluster %s, where its jobs and pods are", what, cluster)
		f.Evidence = []Fact{{Object: object("workload", w.GetName()), Text: "status.clusterName is " + cluster}}
		f.Commands = []string{d.plugin("why %s", d.ref()) + "  # in the cluster " + cluster}
	case w != nil:
		f.Summary = fmt.Sprintf("Kueue runs %s in another cluster; its Workload %s names none", what, w.GetName())
		f.Commands = []string{d.kubectl("describe workload %s", w.GetName())}
	case d.Kueue.WorkloadRead:
		f.Summary = fmt.Sprintf("Kueue runs %s in another cluster once a Workload exists for it, and there is none", what)
		f.Evidence = []Fact{{Object: "workloads." + kueueGroup, Text: fmt.Sprintf("none has the label %s of the %s", jobUIDLabel, d.noun())}}
		f.Commands = []string{"kubectl -n kueue-system get pods"}
	default:
		f.Summary = fmt.Sprintf("Kueue runs %s in another cluster; status.clusterName of its Workload names it", what)
		f.Commands = []string{d.kubectl("get workloads.%s -l %s=%s -o yaml", kueueGroup, jobUIDLabel, d.subject().GetUID())}
	}
	return f
}

// waitsForCluster completes the finding about a Workload that has quota here, if Kueue runs it in another cluster.
func (d *diagnosis) waitsForCluster(w *unstructured.Unstructured, f *Finding) {
	nominated := nominatedOf(w)
	switch {
	case clusterOf(w) != "":
		elsewhere := d.runsElsewhere("the " + d.noun())
		f.Cause, f.Summary = elsewhere.Cause, elsewhere.Summary
		f.Evidence, f.Commands = append(elsewhere.Evidence, f.Evidence...), elsewhere.Commands
	case len(nominated) > 0:
		f.Cause = WorkerClusterPending
		f.Summary = fmt.Sprintf("suspended by Kueue: the quota is reserved here, and the %s waits for quota in another cluster (%s)", d.noun(),
			strings.Join(nominated, ", "))
		f.Commands = append(f.Commands, d.kubectl("describe workload %s", w.GetName())+"  # in the cluster "+nominated[0])
	case inMultiKueue(d.subject()):
		f.Summary += "; Kueue has nominated no worker cluster yet: it reaches none, or none may run the " + d.noun()
		f.Commands = append(f.Commands, "kubectl get multikueueclusters."+kueueGroup)
	}
}

// stepElsewhere says in which cluster the Job of the current step runs. That of a JobSet is said by the JobSet.
func stepElsewhere(d *diagnosis) []Finding {
	for _, job := range d.Jobs {
		if d.Child != nil || !jobInMultiKueue(job) || ptr.Deref(job.Spec.Suspend, false) || jobEnded(job) {
			continue
		}
		f := d.runsElsewhere("the job " + job.Name)
		if cluster := clusterOf(d.Kueue.Workload); cluster != "" {
			f.Commands = []string{d.kubectl("describe job %s", job.Name) + "  # in the cluster " + cluster}
		}
		f.Summary = d.stepWords() + ": " + f.Summary
		f.Evidence = append(f.Evidence, Fact{Object: object("job", job.Name), Text: "spec.managedBy is " + *job.Spec.ManagedBy}, d.stepFact())
		findings := []Finding{f}
		if unreachable := clusterUnreachable(d, ""); unreachable != nil {
			findings = append(findings, *unreachable)
		}
		return findings
	}
	return nil
}

func jobInMultiKueue(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.ManagedBy, "") == jobsetv1alpha2.MultiKueueControllerName
}

// noHistory says why the set has no history of attempts.
func (d *diagnosis) noHistory() string {
	switch cluster := clusterOf(d.Kueue.Workload); {
	case cluster != "":
		return "the cluster " + cluster + " keeps the history of attempts"
	case inMultiKueue(d.subject()):
		return "the cluster that runs it keeps the history of attempts"
	}
	return "this server keeps no history of attempts"
}
