// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestSingleStoreGrows(t *testing.T) {
	tier.OnRequest(t, "three members form a cluster, which takes etcd eight seconds")
	t.Parallel()
	c := newCluster(t)
	single := start(t, c.data(0))
	c.put(connect(t, single), "value")
	id := single.etcd.Server.Cluster().ID().String()
	single.Close()
	c.record.Store(&witness.Record{UUID: "store"})
	if reason := c.refused(1); reason != "m-0 has to start first" {
		t.Errorf("the second member waits for %q", reason)
	}
	first := c.run(0)
	defer first.Close()
	c.wantValue(c.client(0), "value")
	c.adopt(first)
	if first.ClusterID() != id {
		t.Errorf("the cluster is %s, was %s", first.ClusterID(), id)
	}
	second := c.run(1)
	defer second.Close()
	third := c.run(2)
	defer third.Close()
	c.wantValue(c.client(2), "value")
	c.wantMembers(first, second, third)
}

// TestStoresHaveIDsOfTheirOwn guards against members of one store that are taken for members of another one.
func TestStoresHaveIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	ids := sets.New[string]()
	for range 2 {
		s := start(t, shortDir(t))
		ids.Insert(s.etcd.Server.Cluster().ID().String(), s.etcd.Server.MemberID().String())
		s.Close()
	}
	if len(ids) != 4 {
		t.Errorf("IDs %v", sets.List(ids))
	}
}

// TestStoreOfAnEarlierVersionDoesNotGrow starts a store that has the ID of all stores of earlier versions.
func TestStoreOfAnEarlierVersionDoesNotGrow(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	cfg := embedConfig(Config{DataDir: c.data(0), QuotaBytes: 64 << 20, Ephemeral: true}, newLogCore(klog.Background()))
	cfg.InitialClusterToken = embed.NewConfig().InitialClusterToken
	if err := ensurePrivate(c.data(0)); err != nil {
		t.Fatal(err)
	}
	earlier, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	<-earlier.Server.ReadyNotify()
	earlier.Close()
	c.record.Store(&witness.Record{UUID: "store"})
	s := c.open(0)
	defer s.Close()
	_, ended := c.begin(t.Context(), s)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "an earlier version has made") {
		t.Errorf("the start has ended with %v", err)
	}
}

// TestRestoredStoreStartsAsFirstMember: the guard of the store refuses it until an administrator has accepted it.
func TestRestoredStoreStartsAsFirstMember(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	single := start(t, c.data(0))
	c.put(connect(t, single), "value")
	single.Close()
	c.record.Store(&witness.Record{UUID: "store", Cluster: witness.NewCluster("1234")})
	first := c.run(0)
	defer first.Close()
	c.wantValue(c.client(0), "value")
}
