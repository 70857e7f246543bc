// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/etcdcluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// storesVariable asks for the measurement of stores, which hack/bench.sh does.
const storesVariable = "JOBSET_BENCH_STORES"

// measuredStore is one server, and the processes that write what it stores.
type measuredStore struct {
	name      string
	config    *rest.Config
	processes []int

	creates, patches []time.Duration
	used             time.Duration
}

// TestMeasureStores prints how long writes take, and the CPU time of servers and members of etcd, with one embedded member, with three, and with
// an external etcd of three members. All are on the disk of this machine, and are measured in turn.
func TestMeasureStores(t *testing.T) {
	tier.OnRequest(t, "measures, and finds no defect")
	if os.Getenv(storesVariable) == "" {
		t.Skip("hack/bench.sh stores measures")
	}
	const rounds, writes = 5, 200
	stores := []*measuredStore{singleStore(t), externalStore(t), memberStore(t)}
	for round := range rounds + 1 {
		for _, s := range stores {
			s.write(t, writes)
			if round == 0 { // connections and caches are not measured
				s.creates, s.patches, s.used = nil, nil, 0
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-28s %10s %10s %10s %10s %14s\n", "store", "create p50", "create p99", "patch p50", "patch p99", "CPU per write")
	for _, s := range stores {
		fmt.Fprintf(&b, "%-28s %10s %10s %10s %10s %14s\n", s.name, percentile(s.creates, 50), percentile(s.creates, 99), percentile(s.patches, 50),
			percentile(s.patches, 99), (s.used / (2 * rounds * writes)).Round(10*time.Microsecond))
	}
	t.Log(b.String())
}

func singleStore(t *testing.T) *measuredStore {
	server := plane.StartServer(t, framework.Embedded(framework.DiskDir(t))...)
	return &measuredStore{name: "one embedded member", config: server.Config(t), processes: []int{server.PID()}}
}

func externalStore(t *testing.T) *measuredStore {
	cluster, err := etcdcluster.Start(t.Context(), plane.EtcdBinary(), framework.DiskDir(t), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	server := plane.StartServer(t, cluster.Flags()...)
	s := &measuredStore{name: "external etcd, three members", config: server.Config(t), processes: []int{server.PID()}}
	for _, member := range cluster.Members {
		s.processes = append(s.processes, member.PID())
	}
	return s
}

func memberStore(t *testing.T) *measuredStore {
	c := newTrio(t)
	c.dir = framework.DiskDir(t)
	c.start(0, 1, 2)
	c.awaitReady(0, 1, 2)
	s := &measuredStore{name: "three embedded members", config: c.config(0)}
	for _, server := range c.servers {
		s.processes = append(s.processes, server.PID())
	}
	return s
}

// write creates and patches JobSets one after the other.
func (s *measuredStore) write(t *testing.T, writes int) {
	t.Helper()
	e := newEnv(t, nil, s.config)
	before := s.cpu(t)
	for n := range writes {
		begin := time.Now()
		set := e.create(t, jobSet("set-"+strconv.Itoa(n)))
		created := time.Now()
		if _, err := e.typed.Patch(t.Context(), set.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		s.creates, s.patches = append(s.creates, created.Sub(begin)), append(s.patches, time.Since(created))
	}
	s.used += s.cpu(t) - before
}

// cpu returns the CPU time of all processes. The clock of /proc has 100 ticks in a second.
func (s *measuredStore) cpu(t *testing.T) (used time.Duration) {
	t.Helper()
	for _, pid := range s.processes {
		content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(content), ") ")
		fields := strings.Fields(rest)
		for _, field := range fields[11:13] { // in user mode and in the kernel
			ticks, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			used += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return used
}

func percentile(all []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)*percent/100].Round(10 * time.Microsecond)
}
