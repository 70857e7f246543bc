// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// Config is what a guard needs.
type Config struct {
	// Transport and Prefix say where the store is.
	Transport storagebackend.TransportConfig
	Prefix    string
	// Main is the main cluster.
	Main kubernetes.Interface
	// Routes returns who answers for each API group of the server in the main cluster.
	Routes func(context.Context) (map[string]Route, error)
	// Owners finds objects whose owners are of the groups and unknown to the store.
	Owners func(ctx context.Context, groups sets.Set[string]) (owners.Report, error)
	// Definitions finds CustomResourceDefinitions of the groups with objects that the store does not have, or may not have.
	Definitions func(ctx context.Context, groups sets.Set[string]) ([]owners.Definition, error)
	// Created returns whether the store has objects of the group that this server created: none of them were imported.
	Created func(ctx context.Context, group string) (bool, error)
	// Recorder takes the events about refusals.
	Recorder provider.Recorder
	// Version is the version of the server.
	Version string
	// Cluster is the cluster of the embedded member of this server; nil if that is a single one, or etcd runs elsewhere.
	Cluster *witness.Cluster
	// Members returns the members of the cluster if this server has to report them, and nil otherwise.
	Members func() []witness.Member
}

// Guard knows whether the server may answer.
type Guard struct {
	Config
	store  *store
	server string
	newID  func() string
	clock  clock.PassiveClock

	// served holds from when the server may answer, and left from when it may not answer any more.
	served, left *latch
	// ending holds from when the server begins to end, and closed from when it has ended.
	ending, closed *latch
	checks         batches
	// unserved are the groups that the server does not serve although it serves the store, and why. The map does not change.
	unserved atomic.Pointer[map[string]witness.Reason]

	mu     sync.Mutex
	reason witness.Reason
	known  known
	stores []func() error

	// running is held while Run looks after the store. Those below belong to it, and at the end to Close.
	running      sync.Mutex
	refusal      *refusal
	groups       groups
	confirmation confirmation
	lastError    string
}

// known is what the server has seen of the store that it serves.
type known struct {
	uuid    string
	cluster types.UID
	// key and revision are the highest revisions seen: of the key, and of the store.
	key, revision int64
	// groups are the groups that the key lists at that revision; nil if an older version wrote it.
	groups witness.Groups
}

// ErrFresh is why a server ends whose store is the right one again.
var ErrFresh = errors.New("the store is the right one again after it was not: the server ends, because its caches may have data of the " +
	"other store; it has to be started again")

// New returns a guard that has not looked yet.
func New(config Config) (*Guard, error) {
	half, err := openStore(config.Transport, config.Prefix)
	if err != nil {
		return nil, err
	}
	server, err := os.Hostname()
	if err != nil {
		server = "unknown"
	}
	g := &Guard{
		Config: config, store: half, server: server, newID: func() string { return string(uuid.NewUUID()) }, clock: clock.RealClock{},
		served: newLatch(), left: newLatch(), ending: newLatch(), closed: newLatch(),
		reason: witness.ReasonNotChecked,
	}
	g.checks.read = g.check
	registerMetrics()
	show(g.reason)
	return g, nil
}

// Serving returns whether the server may answer.
func (g *Guard) Serving() bool { return g.served.holds() && !g.left.holds() }

// Client reads and writes the store.
func (g *Guard) Client() clientv3.KV { return g.store.client }

// Reason returns why the server does not answer; it is empty while it does.
func (g *Guard) Reason() witness.Reason {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason
}

func (g *Guard) setReason(reason witness.Reason) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reason = reason
	show(reason)
}

// await waits until the server may answer. It returns an error when the context or the server ends before that.
func (g *Guard) await(ctx context.Context) error {
	if g.Serving() {
		return nil
	}
	served := g.served.done
	if g.left.holds() {
		served = nil // never again
	}
	select {
	case <-served:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-g.ending.done: // the watch caches, whose contexts do not end, are waited for
		return g.unavailable()
	}
}

// Times between two turns.
const (
	// pollInterval is how often a server that does not serve looks whether it may.
	pollInterval = 2 * time.Second
	// firstPause is the pause after the first failure to look.
	firstPause = 100 * time.Millisecond
	// checkInterval is how often the key is read while nothing else asks for it, and floorInterval how often the floor is raised.
	checkInterval = 2 * time.Second
	floorInterval = 10 * time.Second
	// maxRetries bounds turns without a pause, which follow each other when servers start at the same time.
	maxRetries = 10
)

// Run looks after the store until the context ends. It returns ErrFresh when the server has to end.
func (g *Guard) Run(ctx context.Context) error {
	context.AfterFunc(ctx, g.ending.set) // also after this returns with ErrFresh
	ctx, cancel := g.ending.until(ctx)
	defer cancel()
	g.running.Lock()
	defer g.running.Unlock()
	for {
		err := g.start(ctx)
		if err == nil && g.Serving() {
			g.watch(ctx)
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// start looks until the server may serve, or the context ends.
func (g *Guard) start(ctx context.Context) error {
	pause, retries := firstPause, 0
	for ctx.Err() == nil && !g.Serving() {
		err := g.turn(ctx)
		if errors.Is(err, ErrFresh) {
			return err
		}
		wait := pollInterval
		switch {
		case errors.Is(err, errAgain) && retries < maxRetries:
			retries++
			continue
		case err != nil:
			g.notLooked(ctx, err)
			wait, pause = pause, min(2*pause, pollInterval)
		default:
			g.lastError, pause = "", firstPause
		}
		retries = 0
		if !g.Serving() {
			sleep(ctx, wait)
		}
	}
	return nil
}

// notLooked remembers and logs why it is not known whether the store is the right one.
func (g *Guard) notLooked(ctx context.Context, err error) {
	if err.Error() == g.lastError || ctx.Err() != nil {
		return
	}
	g.lastError = err.Error()
	klog.FromContext(ctx).Error(err, "Cannot compare the store with the main cluster; nothing is served until then")
}

// watch reads the key, looks at the groups and raises the floor from time to time while the server serves.
func (g *Guard) watch(ctx context.Context) {
	raised := time.Now()
	for ctx.Err() == nil && g.Serving() {
		g.lookAtGroups(ctx)
		if (time.Since(raised) >= floorInterval || len(g.groups.changes) > 0) && g.Serving() && ctx.Err() == nil {
			g.logFailure(ctx, g.raise(ctx))
			raised = time.Now()
		}
		g.pause(ctx)
		_ = g.Verify(ctx)
	}
}

// pause waits for the next round, or for what the next round uses.
func (g *Guard) pause(ctx context.Context) {
	timer := time.NewTimer(checkInterval)
	defer timer.Stop()
	var searched <-chan struct{}
	if g.groups.search != nil {
		searched = g.groups.search.done
	}
	select {
	case <-ctx.Done():
	case <-g.left.done:
	case <-searched:
	case <-timer.C:
	}
}

func (g *Guard) logFailure(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if err != nil && text != g.lastError {
		klog.FromContext(ctx).Error(err, "Cannot raise the floor of the witness")
	}
	g.lastError = text
}

// closeTimeout bounds the last raise of the floor.
const closeTimeout = 5 * time.Second

// Close raises the floor if the server still serves. It is called when all requests were answered and etcd still runs.
func (g *Guard) Close(ctx context.Context) {
	g.ending.set()
	g.running.Lock()
	defer g.running.Unlock()
	if g.Serving() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		g.logFailure(ctx, g.raise(ctx))
		cancel()
	}
	g.closed.set()
	_ = g.store.client.Close()
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
