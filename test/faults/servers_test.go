// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/etcdcluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/probe"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/sample"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// roundsVariable is how often each fault happens in a long run, in which the servers have the settings of the manifests.
// Without it, each happens once, and servers are noticed and ended sooner.
const roundsVariable = "JOBSET_FAULTS_ROUNDS"

// rounds is 0 in a short run.
func rounds() int {
	n, err := strconv.Atoi(os.Getenv(roundsVariable))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// serverFault is something that happens to servers or to their etcd, and is over in the end.
type serverFault struct {
	name string
	// kind is the kind of the fault: a short run has one fault of each kind.
	kind   string
	happen func(context.Context, *replicated) error
	// harmless says that no request may fail, except for one that meets a GOAWAY: how long those are on their way depends on the machine.
	// On a machine so slow that a connection has no answer within the time of GOAWAY, a server may also refuse requests that come too late.
	harmless bool
}

// shutdownDelay is how long servers serve after they were asked to stop: a short run takes less than the manifests do.
func shutdownDelay() time.Duration {
	if rounds() == 0 {
		return 5 * time.Second
	}
	return 15 * time.Second
}

// timeOfGoAway is how long before its end the server asks clients to open other connections: a fifth of the delay.
func timeOfGoAway() time.Duration { return shutdownDelay() / 5 }

// outage is how long something is away.
func outage() time.Duration {
	if rounds() == 0 {
		return 5 * time.Second
	}
	return 10 * time.Second
}

// restartPause is the time after which what was killed is started again.
const restartPause = 2 * time.Second

var serverFaults = []serverFault{
	{"rolling update of servers", "update", func(ctx context.Context, r *replicated) error { return r.servers.Surge(ctx) }, true},
	{"rolling restart of servers", "restart", func(ctx context.Context, r *replicated) error { return r.servers.Restart(ctx) }, true},
	{"kill -9 of each server", "kill", func(ctx context.Context, r *replicated) error {
		return eachAway(ctx, r.servers.AwaitEndpoints, r.servers.Servers...)
	}, false},
	{"rolling restart of members", "restart", restartMembers, false},
	{"kill -9 of each member", "kill", func(ctx context.Context, r *replicated) error {
		return eachAway(ctx, r.etcd.AwaitHealthy, r.etcd.Members...)
	}, false},
	{"SIGSTOP of the leader", "outage", pauseLeader, false},
	{"loss of quorum", "outage", loseQuorum, false},
	{"partition of the leader", "partition", func(ctx context.Context, r *replicated) error { return r.partition(ctx, r.etcd.Leader) }, false},
	{"partition of a follower", "partition", func(ctx context.Context, r *replicated) error { return r.partition(ctx, r.etcd.Follower) }, false},
}

// TestServersUnderFaults breaks three servers and their etcd while a probe asks for JobSets through kube-apiserver.
// Rolling restarts of servers fail no request that has reached one. Whatever happens, all is well afterwards and no
// acknowledged write is lost. Times are only printed. A short run has one fault of each kind.
func TestServersUnderFaults(t *testing.T) {
	tier.OnRequest(t, "faults of three servers on three members of etcd")
	r := useReplicated(t)
	faults := serverFaults
	if rounds() == 0 {
		faults = sample.Kinds(t, faults, func(f serverFault) string { return f.kind })
	}
	for _, fault := range faults {
		t.Run(strings.ReplaceAll(fault.name, " ", "-"), func(t *testing.T) {
			for range max(1, rounds()) {
				observe(t, fault.name, fault.harmless, func(ctx context.Context) error {
					if err := fault.happen(ctx, r); err != nil {
						return err
					}
					return r.recovered(ctx)
				})
			}
		})
	}
}

// TestEmbeddedServerRestarts measures how long the only server with an embedded etcd is away.
func TestEmbeddedServerRestarts(t *testing.T) {
	tier.OnRequest(t, "faults of three servers on three members of etcd")
	for range max(1, rounds()) {
		observe(t, "restart of the only server", false, func(context.Context) error { return shared.restartAPIServer() })
	}
}

// observe lets a fault happen while a probe asks.
func observe(t *testing.T, name string, harmless bool, happen func(context.Context) error) {
	t.Helper()
	ctx := context.Background()
	var options probe.Options
	if rounds() == 0 {
		options.Period = 100 * time.Millisecond // what runs on the same machine needs time, too
	}
	p, err := probe.Start(ctx, shared.REST, options)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := happen(ctx); err != nil {
		t.Error(err)
	}
	took := time.Since(begin)
	report, err := p.Stop(ctx)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%s took %s\n%s", name, took.Round(pollInterval), report)
	reports = append(reports, faultReport{Fault: name, Took: took, Report: report})
	for _, lost := range report.Lost[:min(10, len(report.Lost))] {
		t.Errorf("%s: %s", name, lost)
	}
	if !harmless {
		return
	}
	total := report.Total()
	if others := total.Failures - total.Crossed - total.Refused; others > 0 {
		t.Errorf("%s: %d requests failed that neither met a GOAWAY nor came too late, must be none", name, others)
	}
	if total.Refused > 0 && total.Slowest < timeOfGoAway() {
		t.Errorf("%s: %d requests came too late, must be none while every answer takes less than %s", name, total.Refused, timeOfGoAway())
	}
}

// faultReport is what a probe saw during a fault.
type faultReport struct {
	Fault string        `json:"fault"`
	Took  time.Duration `json:"tookNanoseconds"`
	*probe.Report
}

// reports are the reports of all faults of this run.
var reports []faultReport

// printReports prints a table, and writes everything as JSON to _output/faults.json.
func printReports(root string) error {
	if len(reports) == 0 {
		return nil
	}
	fmt.Fprintf(os.Stderr, "%-28s %6s %7s %7s %5s   worst gap without a success\n", "fault", "failed", "crossed", "refused", "lost")
	for _, r := range reports {
		total := r.Total()
		fmt.Fprintf(os.Stderr, "%-28s %6d %7d %7d %5d  ", r.Fault, total.Failures, total.Crossed, total.Refused, len(r.Lost))
		for _, o := range r.Operations {
			fmt.Fprintf(os.Stderr, " %s %s", o.Name, o.Gap.Round(time.Millisecond))
		}
		fmt.Fprintf(os.Stderr, ", slowest event %s\n", r.SlowestEvent.Round(time.Millisecond))
	}
	content, err := json.MarshalIndent(reports, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "_output")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "faults.json"), append(content, '\n'), 0o644)
}

// recovered waits until all members and servers work.
func (r *replicated) recovered(ctx context.Context) error {
	if err := r.etcd.AwaitHealthy(ctx); err != nil {
		return err
	}
	return r.servers.AwaitEndpoints(ctx)
}

func restartMembers(ctx context.Context, r *replicated) error {
	for _, member := range r.etcd.Members {
		if err := member.Stop(); err != nil {
			return err
		}
		if err := member.Start(); err != nil {
			return err
		}
		if err := r.etcd.AwaitHealthy(ctx); err != nil {
			return err
		}
	}
	return nil
}

func pauseLeader(ctx context.Context, r *replicated) error {
	leader, err := r.etcd.Leader(ctx)
	if err != nil {
		return err
	}
	if err := leader.Pause(); err != nil {
		return err
	}
	time.Sleep(outage())
	return leader.Resume()
}

// loseQuorum stops the leader and one more member, and starts them again.
func loseQuorum(ctx context.Context, r *replicated) error {
	var both []*etcdcluster.Member
	for _, choose := range []func(context.Context) (*etcdcluster.Member, error){r.etcd.Follower, r.etcd.Leader} {
		member, err := choose(ctx)
		if err != nil {
			return err
		}
		both = append(both, member)
	}
	return away(ctx, outage(), r.etcd.AwaitHealthy, both...)
}

func (r *replicated) partition(ctx context.Context, choose func(context.Context) (*etcdcluster.Member, error)) error {
	member, err := choose(ctx)
	if err != nil {
		return err
	}
	r.etcd.Isolate(member)
	time.Sleep(outage())
	r.etcd.Heal(member)
	return nil
}
