// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/sample"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// memberFault is something that happens to the servers and their members, and is over in the end.
type memberFault struct {
	name, kind string
	happen     func(context.Context, *embedded) error
	// harmless says that no request may fail, as in serverFault.
	harmless bool
	// root says that the fault needs hosts and file systems, which only root can make.
	root bool
}

var memberFaults = slices.Concat([]memberFault{
	{name: "rolling restart", kind: "restart", harmless: true, happen: func(ctx context.Context, e *embedded) error {
		return e.servers.Restart(ctx)
	}},
	{name: "kill -9 of each", kind: "kill", happen: func(ctx context.Context, e *embedded) error {
		return eachAway(ctx, e.servers.AwaitEndpoints, e.servers.Servers...)
	}},
	{name: "kill -9 of two", kind: "outage", happen: func(ctx context.Context, e *embedded) error { return e.away(ctx, outage(), 0, 1) }},
	{name: "kill -9 of all", kind: "outage", happen: func(ctx context.Context, e *embedded) error { return e.away(ctx, outage(), 0, 1, 2) }},
	{name: "SIGSTOP of each", kind: "pause", happen: pauseEach},
	{name: "volume lost", kind: "volume", happen: func(ctx context.Context, e *embedded) error {
		if err := e.loseVolume(1); err != nil {
			return err
		}
		return e.away(ctx, restartPause, 1)
	}},
	{name: "volume replaced while another server restarts", kind: "volume", happen: func(ctx context.Context, e *embedded) error {
		empty, another := e.servers.Servers[1], e.servers.Servers[2]
		if err := errors.Join(e.loseVolume(1), empty.Start(), another.Terminate()); err != nil {
			return err
		}
		time.Sleep(restartPause)
		return errors.Join(another.Start(), e.servers.AwaitEndpoints(ctx))
	}},
	{name: "namespace deleted while one is away", kind: "namespace", happen: deleteNamespace},
}, renewed, startOrders(), partitions, diskFaults)

// loseVolume ends a server and removes its data.
func (e *embedded) loseVolume(ordinal int) error {
	e.servers.Servers[ordinal].Kill()
	return os.RemoveAll(e.dataOf(ordinal))
}

// TestEmbeddedMembersUnderFaults is TestServersUnderFaults for servers that run the members of their etcd. In addition, sets that run all
// the time, and their children, must stay as they are.
func TestEmbeddedMembersUnderFaults(t *testing.T) {
	tier.OnRequest(t, "faults of three servers with embedded members")
	e := useEmbedded(t)
	faults := memberFaults
	if rounds() == 0 {
		faults = sample.Kinds(t, faults, func(f memberFault) string { return f.kind })
	}
	for _, fault := range faults {
		t.Run(strings.ReplaceAll(fault.name, " ", "-"), func(t *testing.T) {
			e.skipWithoutRoot(t, fault)
			for range max(1, rounds()) {
				observe(t, fault.name+", embedded", fault.harmless, func(ctx context.Context) error {
					if err := fault.happen(ctx, e); err != nil {
						return err
					}
					return e.recovered(ctx)
				})
				e.bystander.untouched(t, fault.name)
			}
		})
	}
}

func (e *embedded) skipWithoutRoot(t *testing.T, fault memberFault) {
	t.Helper()
	if fault.root && e.network == nil {
		t.Skip("only root can make network namespaces, mount file systems and trace programs")
	}
}

// pauseEach stops one server after the other for a while, one of which has the leader.
func pauseEach(ctx context.Context, e *embedded) error {
	for _, server := range e.servers.Servers {
		if err := server.Pause(); err != nil {
			return err
		}
		time.Sleep(outage())
		if err := errors.Join(server.Resume(), server.AwaitEndpoint(ctx)); err != nil {
			return err
		}
	}
	return nil
}
