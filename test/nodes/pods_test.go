// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// pods returns those that match and have not begun to end.
func (e *env) pods(ctx context.Context, selector string) ([]corev1.Pod, error) {
	list, err := core.CoreV1().Pods(e.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

func ofSet(name string) string { return jobsetv1alpha2.JobSetNameKey + "=" + name }

// running waits until as many pods match and their containers run, and returns them.
func (e *env) running(selector string, want int) (pods []corev1.Pod) {
	e.Helper()
	framework.Eventually(e, fmt.Sprintf("%d pods with %s run", want, selector), func(ctx context.Context) (err error) {
		if pods, err = e.pods(ctx, selector); err != nil {
			return err
		}
		if len(pods) != want {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		for i := range pods {
			if !runs(&pods[i]) {
				return fmt.Errorf("%s is %s, its containers are %+v", pods[i].Name, pods[i].Status.Phase, pods[i].Status.ContainerStatuses)
			}
		}
		return nil
	})
	return pods
}

// runs reports whether all containers of a pod run.
func runs(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running == nil {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0 && pod.Status.PodIP != ""
}

// serving makes a container answer over HTTP, with a readiness probe that asks every second.
func serving(container *corev1.Container, env ...corev1.EnvVar) {
	container.Args, container.Env = []string{"serve"}, env
	container.ReadinessProbe = &corev1.Probe{
		PeriodSeconds: 1, TimeoutSeconds: 10, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8080)}},
	}
}

// hidden is not ready until it is asked to be.
var hidden = corev1.EnvVar{Name: "HIDDEN", Value: "yes"}

// ask sends a request to a container that serves, from this machine to the address of the pod.
func ask(ctx context.Context, pod *corev1.Pod, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Status.PodIP+":8080"+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

// asked asks until there is an answer: a program that has just been started does not listen yet.
func (e *env) asked(pod *corev1.Pod, path string) (answer string) {
	e.Helper()
	framework.Eventually(e, pod.Name+" answers "+path, func(ctx context.Context) (err error) {
		answer, err = ask(ctx, pod, path)
		return err
	})
	return answer
}

// end has a container that serves end with this exit code. That it does not answer any more is good too.
func (e *env) end(pod *corev1.Pod, code int) {
	e.Helper()
	reached := false
	framework.Eventually(e, pod.Name+" ends", func(ctx context.Context) error {
		_, err := ask(ctx, pod, fmt.Sprintf("/exit?code=%d", code))
		// A container that has just started does not listen yet; one that was reached has ended.
		if refused := errors.Is(err, syscall.ECONNREFUSED); !refused || !reached {
			reached = reached || !refused
			return err
		}
		return nil
	})
}

// processes returns those of a container. Their control group has the id of the container.
func processes(status corev1.ContainerStatus) (pids []int, err error) {
	_, id, _ := strings.Cut(status.ContainerID, "://")
	if id == "" {
		return nil, fmt.Errorf("the container %s has no id", status.Name)
	}
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		content, err := os.ReadFile(group)
		if err != nil || !strings.Contains(string(content), id) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(group)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	if len(pids) == 0 {
		return nil, fmt.Errorf("no process runs in the container %s", status.ContainerID)
	}
	return pids, nil
}

// kill ends the processes of a container with SIGKILL.
func kill(status corev1.ContainerStatus) error {
	pids, err := processes(status)
	for _, pid := range pids {
		if kill := syscall.Kill(pid, syscall.SIGKILL); kill != nil && !errors.Is(kill, syscall.ESRCH) {
			err = errors.Join(err, kill)
		}
	}
	return err
}
