// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// allOrders makes TestStartOrders try all 24 orders.
const allOrders = "JOBSET_START_ORDERS"

// parts of a cluster, as TestStartOrders starts them. Our programs must never end by themselves.
const (
	mainEtcd, mainAPI         = "etcd", "kube-apiserver"
	ourServer, ourControllers = "jobset-apiserver", "jobset-controller"
)

// TestStartOrders stops the whole control plane and starts it in several orders. Each part has begun to listen, or to
// work, before the next one starts, so that the later ones are missed. Our processes stay, and a set that is created
// afterwards has its Job.
func TestStartOrders(t *testing.T) {
	tier.OnRequest(t, "starts a control plane in many orders")
	orders := [][]string{
		{ourServer, ourControllers, mainAPI, mainEtcd},
		{ourControllers, mainEtcd, mainAPI, ourServer},
	}
	if os.Getenv(allOrders) != "" {
		orders = permutations(mainEtcd, mainAPI, ourServer, ourControllers)
	}
	p := newParts(t)
	for _, order := range orders {
		t.Run(strings.Join(order, ","), func(t *testing.T) {
			p.stop(t)
			last, ready, served := p.start(t, order)
			l := newLife(t, newDice(t))
			set := builders.JobSet("after", builders.WithJobs("w", 1, 1))
			set.Namespace = l.namespace
			l.poll("creating a set", func() error {
				_, err := shared.JobSets.JobsetV1alpha2().JobSets(l.namespace).Create(l.ctx, set, metav1.CreateOptions{})
				return err
			})
			l.poll("waiting for its Job", func() error {
				_, err := shared.Kube.BatchV1().Jobs(l.namespace).Get(l.ctx, "after-w-0", metav1.GetOptions{})
				return err
			})
			p.mustNotHaveEnded(t)
			t.Logf("ORDER %s | kube-apiserver ready %.1f s after the last start | list served %.1f s after the last start, %.1f s after that | Job after %.1f s | kube-apiserver started %d times",
				strings.Join(order, ", "), ready.Sub(last).Seconds(), served.Sub(last).Seconds(), served.Sub(later(ready, last)).Seconds(), time.Since(last).Seconds(), p.starts)
		})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// permutations returns all orders.
func permutations(names ...string) (orders [][]string) {
	if len(names) < 2 {
		return [][]string{names}
	}
	for i, first := range names {
		for _, rest := range permutations(slices.Delete(slices.Clone(names), i, i+1)...) {
			orders = append(orders, append([]string{first}, rest...))
		}
	}
	return orders
}

// parts runs the programs of the shared cluster that TestStartOrders starts in any order.
type parts struct {
	commands map[string][]string
	logs     string

	mu      sync.Mutex
	running map[string]*framework.Process
	// starts is how often kube-apiserver was started since the last stop.
	starts  int
	stopped bool
}

// newParts takes the programs over from the shared cluster, which gets them back at the end.
func newParts(t *testing.T) *parts {
	t.Helper()
	p := &parts{commands: map[string][]string{}, logs: t.TempDir(), running: map[string]*framework.Process{}, stopped: true}
	t.Cleanup(func() {
		p.stop(t)
		if err := errors.Join(shared.Script("up"), shared.Script("stop", "controller"), shared.connect()); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{mainEtcd, mainAPI, ourServer} {
		p.commands[name] = commandOf(t, name)
	}
	p.commands[ourControllers] = []string{shared.Program(ourControllers), "--kubeconfig=" + filepath.Join(shared.Dir, "controller.kubeconfig"),
		"--leader-elect-resource-namespace=jobset-system", "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0", "--service-endpoints-canary=false"}
	endShared(t)
	return p
}

// stop ends everything: our programs as Kubernetes does, while the others run, and the others at once.
func (p *parts) stop(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	for _, name := range []string{ourControllers, ourServer} {
		if process := p.take(name); process != nil {
			if err := process.Terminate(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, name := range []string{mainAPI, mainEtcd} {
		if process := p.take(name); process != nil {
			process.Kill()
		}
	}
}

func (p *parts) take(name string) *framework.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	process := p.running[name]
	delete(p.running, name)
	return process
}

// start starts the parts in order. It returns when the last one was started, when kube-apiserver was ready, and when it
// passed on a list from our server.
func (p *parts) start(t *testing.T, order []string) (last, ready, served time.Time) {
	t.Helper()
	p.mu.Lock()
	p.stopped, p.starts = false, 0
	p.mu.Unlock()
	for i, name := range order {
		process, err := p.launch(t, name)
		if err != nil {
			t.Fatal(err)
		}
		last = time.Now()
		if i == len(order)-1 {
			break
		}
		framework.Eventually(t, name+" listens", func(context.Context) error {
			if listeners, err := process.Listeners(); err != nil || len(listeners) == 0 {
				return fmt.Errorf("it listens to nothing (%w)", err)
			}
			return nil
		})
	}
	deadline := last.Add(5 * time.Minute)
	await := func(what string, check func() error) time.Time {
		for {
			err := check()
			if err == nil {
				return time.Now()
			}
			p.mustNotHaveEnded(t)
			if time.Now().After(deadline) {
				t.Fatalf("%s: %v", what, err)
			}
			time.Sleep(50 * time.Millisecond) // the resolution of what is measured
		}
	}
	ready = await("waiting for kube-apiserver", func() error {
		return shared.Kube.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(2 * time.Second).Do(t.Context()).Error()
	})
	served = await("listing sets through kube-apiserver", func() error {
		_, err := shared.JobSets.JobsetV1alpha2().JobSets("").List(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64(2))})
		return err
	})
	return last, ready, served
}

// launch starts a part. kube-apiserver ends without its etcd, and is started again, as by the kubelet.
func (p *parts) launch(t *testing.T, name string) (*framework.Process, error) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	process, err := framework.StartProcess(filepath.Join(p.logs, name+".log"), p.commands[name][0], p.commands[name][1:]...)
	if err != nil {
		return nil, err
	}
	p.running[name] = process
	if name == mainAPI {
		p.starts++
		go p.replace(t, process)
	}
	return process, nil
}

func (p *parts) replace(t *testing.T, process *framework.Process) {
	<-process.Done()
	p.mu.Lock()
	again := !p.stopped && p.running[mainAPI] == process
	p.mu.Unlock()
	if again {
		if _, err := p.launch(t, mainAPI); err != nil {
			t.Error(err)
		}
	}
}

func (p *parts) mustNotHaveEnded(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range []string{ourServer, ourControllers} {
		select {
		case <-p.running[name].Done():
			t.Fatalf("%s has ended: %v", name, p.running[name].State())
		default:
		}
	}
}
