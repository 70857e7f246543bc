// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// slowStart is how long a container may take to be created.
const slowStart = 2 * time.Minute

// ailment is what keeps a pod from working.
type ailment struct {
	pod     *corev1.Pod
	message string
	// verb is the end of the command that shows more; "" if there is nothing to be done but to wait.
	verb string
	// unready says that the pod runs, and only its readiness probe fails.
	unready bool
}

// serverPods checks the pods of the server.
func serverPods(_ context.Context, p *inspection) finding {
	if p.external() {
		return good("the server does not run in pods that the Service selects")
	}
	f, unready := p.checkPods(serverName, p.servers)
	if unready == nil {
		return f
	}
	cause := ""
	switch {
	case p.refuses():
		cause = "store"
	case p.failing(etcdChecks...):
		cause = "etcd"
	case len(p.unready) > 0:
		f.message, f.certain = f.message+": its readiness checks "+cli.Join(p.unready, "and")+" fail", true
	}
	if cause == "" {
		return f
	}
	f = unknown("pod %s runs and is not ready; the check %s says why", unready.Name, cause)
	f.cause = cause
	return f
}

// etcdChecks are the readiness checks that fail without a store.
var etcdChecks = []string{"etcd", "etcd-readiness"}

// failing returns whether one of the readiness checks of a pod fails.
func (p *inspection) failing(checks ...string) bool {
	return slices.ContainsFunc(p.unready, func(name string) bool { return slices.Contains(checks, name) })
}

// readReadiness reads which readiness checks of a pod fail, if that is all that is wrong with the pods of the server.
func (p *inspection) readReadiness(ctx context.Context) {
	if _, pod := p.checkPods(serverName, p.servers); pod != nil && !p.external() {
		p.unready = p.readyz(ctx, pod)
	}
}

// checkPods looks at the pods of a program. The second result is a pod that would work if it were ready, if nothing
// else is wrong.
func (p *inspection) checkPods(program string, pods []corev1.Pod) (finding, *corev1.Pod) {
	if p.podsErr != nil {
		return unseenHere("pods in namespace "+p.namespace, p.podsErr), nil
	}
	var ready int
	var ill []ailment
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		if a := p.ailmentOf(pod); a != nil {
			ill = append(ill, *a)
		} else {
			ready++
		}
	}
	if len(ill) == 0 && ready > 0 {
		return good("%s of %s", cli.Count(ready, "ready pod"), program), nil
	}
	if len(ill) == 0 {
		return finding{status: Fail, certain: true, message: fmt.Sprintf("there are no pods of %s in namespace %s", program, p.namespace),
			fix: fmt.Sprintf("kubectl -n %s describe deployments,statefulsets,replicasets -l %s=%s", p.namespace, nameLabel, program)}, nil
	}
	slices.SortStableFunc(ill, clearerFirst)
	f := finding{status: Fail, certain: !ill[0].unready, message: "pod " + ill[0].pod.Name + " " + ill[0].message,
		fix: fmt.Sprintf("kubectl -n %s %s", p.namespace, ill[0].verb)}
	if more := len(ill) - 1; more > 0 {
		f.message += fmt.Sprintf(" (and %s)", cli.Count(more, "other pod"))
	}
	if ready > 0 {
		f.status, f.message = Warn, f.message+"; "+cli.Count(ready, "other pod")+" ready"
		return f, nil
	}
	if ill[0].unready {
		return f, ill[0].pod
	}
	return f, nil
}

// clearerFirst sorts ailments: what only its probe keeps from working says least about the cause.
func clearerFirst(a, b ailment) int {
	if a.unready != b.unready {
		return map[bool]int{true: 1, false: -1}[a.unready]
	}
	return strings.Compare(a.pod.Name, b.pod.Name)
}

// ailmentOf returns what keeps a pod from working; nil if it is ready.
func (p *inspection) ailmentOf(pod *corev1.Pod) *ailment {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return &ailment{pod: pod, message: fmt.Sprintf("has no node (%s): %s", c.Reason, c.Message), verb: "describe pod " + pod.Name}
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if a := p.ailmentOfContainer(pod, &statuses[i]); a != nil {
				return a
			}
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return &ailment{pod: pod, message: fmt.Sprintf("has failed (%s): %s", pod.Status.Reason, pod.Status.Message), verb: "describe pod " +
			pod.Name}
	}
	if pod.Status.Phase != corev1.PodRunning {
		return &ailment{pod: pod, message: fmt.Sprintf("is %s since %s", pod.Status.Phase, cli.Ago(p.clock(), pod.CreationTimestamp.Time)),
			verb: "describe pod " + pod.Name}
	}
	return &ailment{pod: pod, message: "runs and is not ready", verb: "logs " + pod.Name + " --tail=20", unready: true}
}

// ailmentOfContainer returns what keeps a container from running; nil if nothing does.
func (p *inspection) ailmentOfContainer(pod *corev1.Pod, c *corev1.ContainerStatus) *ailment {
	waiting := c.State.Waiting
	if last := terminated(c); last != nil && (waiting != nil || c.State.Terminated != nil) && last.ExitCode != 0 {
		message := fmt.Sprintf("crashes: container %s ended with exit code %d (%s) after %s", c.Name, last.ExitCode, last.Reason,
			cli.Count(int(c.RestartCount), "restart"))
		if line := lastLine(last.Message); line != "" {
			message += ": " + line
		}
		return &ailment{pod: pod, message: message, verb: "logs " + pod.Name + " --previous --tail=20"}
	}
	if waiting == nil || waiting.Reason == cli.ReasonPodInitializing {
		return nil
	}
	describe := "describe pod " + pod.Name
	switch waiting.Reason {
	case cli.ReasonErrImagePull, cli.ReasonImagePullBackOff, cli.ReasonInvalidImageName, cli.ReasonErrImageNeverPull:
		return &ailment{pod: pod, message: fmt.Sprintf("cannot pull its image %s (%s): %s", c.Image, waiting.Reason, waiting.Message),
			verb: describe}
	case cli.ReasonContainerCreating:
		if age := p.clock().Sub(pod.CreationTimestamp.Time); age > slowStart {
			return &ailment{pod: pod, message: fmt.Sprintf("has waited %s for its volumes or its network", cli.Duration(age)), verb: describe}
		}
		return &ailment{pod: pod, message: "is being started", verb: describe}
	}
	return &ailment{pod: pod, message: fmt.Sprintf("does not start (%s): %s", waiting.Reason, waiting.Message), verb: describe}
}

// terminated is how a container ended the last time; nil if it never did.
func terminated(c *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if c.State.Terminated != nil {
		return c.State.Terminated
	}
	return c.LastTerminationState.Terminated
}

// lastLine is the last line of a log that says something.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// readyz returns the names of the readiness checks of a pod that fail; none if they cannot be read.
func (p *inspection) readyz(ctx context.Context, pod *corev1.Pod) (failed []string) {
	port := int32(8443)
	for _, container := range pod.Spec.Containers {
		for _, of := range container.Ports {
			if of.Name == "https" {
				port = of.ContainerPort
			}
		}
	}
	a, err := p.get(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/https:%s:%d/proxy/readyz?verbose", pod.Namespace, pod.Name, port))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(a.body)) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "[-]"); is && len(failed) < maxNamed {
			name, _, _ = strings.Cut(name, " ")
			failed = append(failed, name)
		}
	}
	return failed
}
