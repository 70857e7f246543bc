// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Small questions to objects that several rules ask.

func isTrue(js *jobsetv1alpha2.JobSet, conditionType string) *metav1.Condition {
	if c := meta.FindStatusCondition(js.Status.Conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

func finished(js *jobsetv1alpha2.JobSet) bool {
	return isTrue(js, jobsetv1alpha2.JobSetCompleted) != nil || isTrue(js, jobsetv1alpha2.JobSetFailed) != nil
}

func jobEnded(job *batchv1.Job) bool {
	return helper.TrueJobCondition(job, batchv1.JobComplete) != nil || helper.TrueJobCondition(job, batchv1.JobFailed) != nil
}

// podsWanted is the number of pods that a Job runs at once.
func podsWanted(job *batchv1.Job) int32 {
	n := ptr.Deref(job.Spec.Parallelism, 1)
	if job.Spec.Completions != nil {
		n = min(n, *job.Spec.Completions-job.Status.Succeeded)
	}
	return n
}

func containers(pod *corev1.Pod) []corev1.ContainerStatus {
	return append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
}

func nodeReady(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// lastCause is the failure that ended the newest attempt that failed, with that attempt.
func lastCause(js *jobsetv1alpha2.JobSet) (*jobsetv1alpha2.Attempt, *jobsetv1alpha2.FailureCause) {
	for i := len(js.Status.Attempts) - 1; i >= 0; i-- {
		if a := &js.Status.Attempts[i]; a.FirstCause != nil {
			return a, a.FirstCause
		}
	}
	return nil, nil
}

// Words.

func ago(now, then time.Time) string { return cli.Ago(now, then) }

func span(now, then time.Time) string { return cli.Duration(now.Sub(then)) }

func count(n int, one string) string { return cli.Count(n, one) }

// podsDo is so many pods and what they do, with the verb for one and for several.
func podsDo(n int, one, several string) string {
	if n == 1 {
		return "1 pod " + one
	}
	return cli.Count(n, "pod") + " " + several
}

// some names the first few of many.
func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(names[:most], ", "), cli.Number(len(names)-most))
}

func quoted(reason string) string {
	if reason = oneLine(reason); reason == "" {
		return ""
	}
	return ": " + strconv.Quote(reason)
}

// kubectl is a command in the namespace of the set.
func (d *diagnosis) kubectl(format string, args ...any) string {
	return fmt.Sprintf("kubectl -n %s ", d.Namespace) + fmt.Sprintf(format, args...)
}

// plugin is a command of this plugin for the set.
func (d *diagnosis) plugin(format string, args ...any) string {
	return fmt.Sprintf("kubectl jobset -n %s ", d.Namespace) + fmt.Sprintf(format, args...)
}

func (d *diagnosis) set() string { return object(d.kind().Names[0], d.Name) }

// ref is the object as commands of the plugin take it.
func (d *diagnosis) ref() string { return d.kind().prefix + d.Name }

// usage is the command that shows the use of memory, if there is one for the kind.
func (d *diagnosis) usage() []string {
	if !d.kind().top {
		return nil
	}
	return []string{d.plugin("top %s", d.ref())}
}

// noun is the object as sentences call it.
func (d *diagnosis) noun() string { return d.kind().noun }

func conditionFact(name string, c *metav1.Condition) Fact {
	return Fact{Object: name, Text: fmt.Sprintf("condition %s %s: %s, %s", c.Type, c.Status, c.Reason, oneLine(c.Message)),
		Time: at(c.LastTransitionTime.Time)}
}
