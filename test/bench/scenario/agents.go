// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
)

const (
	// agentRequests is how many requests all agents have under way at a time, watches that have begun aside. API servers
	// let about as many wait.
	agentRequests = 200
	// exitFailed and exitRestart are the exit codes of a container that fails, and of an agent that restarts its pod.
	exitFailed, exitRestart = 137, 1
)

// agents follow the protocol of the restart agent, one for each pod, as simulated nodes run no containers. Each has a
// watch of its own, which it begins once more after each restart, and each restart of containers is written to the
// status of the pod as a kubelet does.
type agents struct {
	*space
	kube    kubernetes.Interface
	sets    versioned.Interface
	pods    []string
	turns   chan struct{}
	kill    chan struct{}
	cancel  context.CancelFunc
	running sync.WaitGroup
	failed  chan error
	// lifted is the number of agents that have lifted their barrier, by attempt.
	lifted [4]atomic.Int64
}

// agentView is what an agent reads of a set.
type agentView struct {
	Type   string
	Object struct{ Status agentStatus }
}

type agentStatus struct {
	Previous *int32 `json:"previousInPlaceRestartAttempt"`
	Current  *int32 `json:"currentInPlaceRestartAttempt"`
}

func (s *space) newAgents(ctx context.Context) (*agents, error) {
	a := &agents{space: s, turns: make(chan struct{}, agentRequests), kill: make(chan struct{}), failed: make(chan error, 1), cancel: func() {}}
	config := s.Cluster.Config(runtime.ContentTypeJSON)
	var err error
	if a.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if a.sets, err = versioned.NewForConfig(config); err != nil {
		return nil, err
	}
	pods, err := s.Cluster.Kube.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		a.pods = append(a.pods, pods.Items[i].Name)
	}
	return a, nil
}

// start starts all agents and waits until they have lifted their barriers for the first time.
func (a *agents) start(ctx context.Context, timeout time.Duration) error {
	ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for i, pod := range a.pods {
		var kill <-chan struct{}
		if i == 0 {
			kill = a.kill
		}
		a.running.Go(func() {
			if err := a.run(ctx, pod, kill); err != nil && ctx.Err() == nil {
				select {
				case a.failed <- fmt.Errorf("agent of pod %s: %w", pod, err):
				default:
				}
			}
		})
	}
	return a.untilLifted(ctx, 0, timeout)
}

func (a *agents) stop() {
	a.cancel()
	a.running.Wait()
}

// failing is the pod whose container failOne lets fail.
func (a *agents) failing() string { return a.pods[0] }

func (a *agents) failOne() { close(a.kill) }

// untilLifted waits until all agents have lifted the barrier of an attempt.
func (a *agents) untilLifted(ctx context.Context, attempt int, timeout time.Duration) error {
	late, look := time.NewTimer(timeout), time.NewTicker(10*time.Millisecond)
	defer late.Stop()
	defer look.Stop()
	for a.lifted[attempt].Load() < int64(len(a.pods)) {
		select {
		case <-look.C:
		case err := <-a.failed:
			return err
		case <-late.C:
			return fmt.Errorf("after %v, %d of %d agents have lifted the barrier of attempt %d", timeout, a.lifted[attempt].Load(), len(a.pods), attempt)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// run is the life of a pod: its containers run and are restarted.
func (a *agents) run(ctx context.Context, pod string, kill <-chan struct{}) error {
	for restarts := 1; ; restarts++ {
		code, err := a.runOnce(ctx, pod, kill)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if code == exitFailed {
			kill = nil
		}
		if err := a.showRestart(ctx, pod, restarts, code); err != nil {
			return err
		}
	}
}

// runOnce runs the agent of a pod until it restarts its pod or the container beside it fails. It returns the exit code.
func (a *agents) runOnce(ctx context.Context, pod string, kill <-chan struct{}) (code int, err error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-kill: // it is used only for agents that fail
			stop()
		case <-watching.Done():
		}
	}()
	stream, err := a.watch(watching)
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	one := agent{agents: a, pod: pod}
	for decoder := json.NewDecoder(stream); ; {
		var set agentView
		if err := decoder.Decode(&set); err != nil {
			if watching.Err() != nil {
				return exitFailed, nil
			}
			return 0, fmt.Errorf("watching the set: %w", err)
		}
		if set.Type == "BOOKMARK" {
			continue
		}
		if restarts, err := one.observe(ctx, set.Object.Status); err != nil || restarts {
			return exitRestart, err
		}
	}
}

// agent is one run of one agent.
type agent struct {
	*agents
	pod string
	// attempt is the one that it is in; nil until it has seen the set.
	attempt *int32
	up      bool
}

// observe does what a state of the set calls for. It reports whether the pod restarts.
func (a *agent) observe(ctx context.Context, status agentStatus) (restarts bool, err error) {
	if a.attempt == nil {
		a.attempt = ptr.To(ptr.Deref(status.Current, -1) + 1)
		if err := a.say(ctx, a.pod, *a.attempt); err != nil {
			return false, err
		}
	}
	if status.Previous != nil && *a.attempt <= *status.Previous {
		return true, nil
	}
	if !a.up && ptr.Equal(status.Current, a.attempt) {
		a.up = true
		a.lifted[*a.attempt].Add(1)
	}
	return false, nil
}

// inTurn makes a request when fewer than agentRequests are under way.
func (a *agents) inTurn(ctx context.Context, request func() error) error {
	select {
	case a.turns <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.turns }()
	return request()
}

// watch begins with the present state of the set, which must not be an old one.
func (a *agents) watch(ctx context.Context) (stream io.ReadCloser, err error) {
	options := metav1.ListOptions{
		Watch: true, FieldSelector: "metadata.name=" + setName, AllowWatchBookmarks: true, SendInitialEvents: ptr.To(true),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
	err = a.inTurn(ctx, func() (err error) {
		stream, err = a.sets.JobsetV1alpha2().RESTClient().Get().Namespace(a.name).Resource("jobsets").VersionedParams(&options, scheme.ParameterCodec).Stream(ctx)
		return err
	})
	return stream, err
}

// say writes the attempt that a pod has reached.
func (a *agents) say(ctx context.Context, pod string, attempt int32) error {
	apply := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"annotations":{%q:"%d"}}}`,
		pod, a.name, jobsetv1alpha2.InPlaceRestartAttemptKey, attempt)
	options := metav1.PatchOptions{FieldManager: "in-place-restart-agent", Force: ptr.To(true)}
	return a.inTurn(ctx, func() error {
		_, err := a.kube.CoreV1().Pods(a.name).Patch(ctx, pod, types.ApplyYAMLPatchType, apply, options)
		return err
	})
}

// showRestart writes what a kubelet does about containers that were restarted.
func (a *agents) showRestart(ctx context.Context, pod string, restarts, code int) error {
	patch := fmt.Appendf(nil, `{"status":{"containerStatuses":[{"name":"main","restartCount":%d,"lastState":{"terminated":{"exitCode":%d,"reason":"Error","finishedAt":%q}}}]}}`,
		restarts, code, time.Now().UTC().Format(time.RFC3339))
	err := a.inTurn(ctx, func() error {
		_, err := a.kube.CoreV1().Pods(a.name).Patch(ctx, pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
