// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/client/pkg/v3/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestThreeMembersFormOneCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	// The others are earlier, and wait for the first.
	late := []*Server{c.open(1), c.open(2)}
	var ends []<-chan error
	for _, s := range late {
		defer s.Close()
		_, ended := c.begin(t.Context(), s)
		ends = append(ends, ended)
	}
	first := c.found()
	c.put(c.client(0), "one")
	for i, ended := range ends {
		if err := <-ended; err != nil {
			t.Fatalf("member %d: %v", i+1, err)
		}
	}
	list, err := c.client(2).MemberList(t.Context())
	if err != nil || len(list.Members) != 3 {
		t.Fatalf("members %v, %v", list, err)
	}
	for _, m := range list.Members {
		if m.IsLearner || !strings.HasPrefix(m.Name, "m-") {
			t.Errorf("member %v", m)
		}
	}
	if first.ClusterID() != late[0].ClusterID() || first.ClusterID() != late[1].ClusterID() {
		t.Errorf("clusters %s, %s, %s", first.ClusterID(), late[0].ClusterID(), late[1].ClusterID())
	}
	c.wantValue(c.client(1), "one")

	// Any two go on without the third, which comes back with its data.
	first.Close()
	c.put(c.client(1, 2), "two")
	first = c.run(0)
	defer first.Close()
	c.wantValue(c.client(0), "two")
}

func TestClusterStartsAfterAnOutage(t *testing.T) {
	tier.OnRequest(t, "three members form a cluster twice, which takes etcd ten seconds")
	t.Parallel()
	c := newCluster(t)
	for _, s := range c.form() {
		s.Close()
	}
	// One that is asked to end meanwhile does so.
	ending := c.open(1)
	ctx, cancel := context.WithCancel(t.Context())
	waits, ended := c.begin(ctx, ending)
	<-waits
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the start has ended with %v", err)
	}
	ending.Close()
	alone := c.open(2)
	defer alone.Close()
	waits, ended = c.begin(t.Context(), alone)
	if reason := <-waits; reason != "more than half of the members must run" {
		t.Errorf("a member alone waits for %q", reason)
	}
	other := c.run(1)
	defer other.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	c.put(c.client(1, 2), "value")
}

func TestOnlyTheFirstMemberFoundsACluster(t *testing.T) {
	tier.OnRequest(t, "three members form a cluster, which takes etcd eight seconds")
	t.Parallel()
	c := newCluster(t)
	if reason := c.refused(1); reason != "m-0 has to start first" {
		t.Errorf("without a record: %s", reason)
	}
	c.record.Store(&witness.Record{UUID: "store", Cluster: witness.NewCluster("1234")})
	for _, ordinal := range []int{0, 2} {
		if reason := c.refused(ordinal); !strings.HasPrefix(reason, "the data directory is empty, and too few of the other members answer: ") {
			t.Errorf("member %d without data: %s", ordinal, reason)
		}
	}
}

func TestMemberWhoseDataWereLostIsReplaced(t *testing.T) {
	tier.OnRequest(t, "three members form a cluster, which takes etcd eight seconds")
	t.Parallel()
	c := newCluster(t)
	all := c.form()
	defer all[2].Close()
	c.put(c.client(0), "value")
	all[1].Close()
	c.lose(1)
	c.told = nil
	again := c.run(1)
	defer again.Close()
	c.wantValue(c.client(1), "value")
	want := []string{
		"StoreMemberRemoved: Removed m-1 from the embedded etcd, because its data directory is empty. It joins again.",
		"StoreMemberAdded: Added m-1 to the embedded etcd as a learner. It has a vote when it has the data of the others.",
		"StoreMemberPromoted: m-1 has the data of the other members of the embedded etcd, and has a vote from now on.",
	}
	if diff := cmp.Diff(want, c.told); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	// Now the others can be lost, too, one after the other.
	all[0].Close()
	c.lose(0)
	first := c.run(0)
	defer first.Close()
	c.wantValue(c.client(0), "value")
	if first.ClusterID() != again.ClusterID() {
		t.Errorf("clusters %s and %s", first.ClusterID(), again.ClusterID())
	}
	c.wantMembers(first, again, all[2])
}

func TestLostDataAreNotReplacedUnlessTheOthersAgree(t *testing.T) {
	tier.OnRequest(t, "three members form a cluster, which takes etcd eight seconds")
	t.Parallel()
	c := newCluster(t)
	all := c.form()
	defer all[0].Close()
	c.put(c.client(0), "value")
	// Another process runs the member, and this one has an empty directory.
	elsewhere := c.config(1)
	other, err := Open(Config{DataDir: filepath.Join(c.dir, "elsewhere"), QuotaBytes: 64 << 20, Ephemeral: true, Cluster: elsewhere})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := c.join(other); err == nil || !strings.Contains(err.Error(), "stop the other process that runs m-1") {
		t.Errorf("while the member answers: %v", err)
	}
	all[1].Close()
	all[2].Close()
	if err := c.join(other); !errors.Is(err, ErrAlone) {
		t.Errorf("without a majority: %v", err)
	}
	if len(c.told) != 4 {
		t.Errorf("steps %q", c.told)
	}
	third := c.run(2) // with its data
	defer third.Close()
	second := c.run(1)
	defer second.Close()
	c.put(c.client(1), "other")
	c.wantMembers(all[0], second, third)
}

func TestNoStoreIsMadeBesideAnother(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first := c.found()
	defer c.run(1).Close()
	first.Close()
	if err := os.RemoveAll(c.data(0)); err != nil {
		t.Fatal(err)
	}
	c.record.Store(nil) // a user has deleted it
	if reason := c.refused(0); !strings.Contains(reason, " has a store that ") {
		t.Errorf("the member waits for %q", reason)
	}
}

func TestMemberOfAnotherClusterDoesNotStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.found().Close()
	c.record.Store(&witness.Record{UUID: "store", Cluster: witness.NewCluster("1234")})
	s := c.open(0)
	_, ended := c.begin(t.Context(), s)
	if err := <-ended; !errors.Is(err, ErrOtherCluster) {
		t.Errorf("the witness knows another cluster: %v", err)
	}
	s.Close()
	// An empty member does not join it either.
	c.record.Store(nil)
	defer c.run(0).Close()
	c.record.Store(&witness.Record{UUID: "store", Cluster: witness.NewCluster("1234")})
	if reason := c.refused(1); !strings.Contains(reason, ", not 1234") {
		t.Errorf("the member waits for %q", reason)
	}
}

func TestDataOfAnotherMemberAreNotUsed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.found().Close()
	if err := os.Rename(c.data(0), c.data(1)); err != nil {
		t.Fatal(err)
	}
	start(t, c.data(2)).Close() // a single member
	for ordinal, want := range map[int]string{
		1: " has the data of the member at ", 2: " has the data of a store with one member, which only m-0 may have",
	} {
		s := c.open(ordinal)
		_, ended := c.begin(t.Context(), s)
		if err := <-ended; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("member %d: %v", ordinal, err)
		}
		s.Close()
	}
}

func TestInterruptedJoinIsRepeated(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	defer c.found().Close()
	interrupted := c.open(1)
	if err := c.join(interrupted); err != nil {
		t.Fatal(err)
	}
	interrupted.Close()
	defer c.run(1).Close()
	list, err := c.client(0).MemberList(t.Context())
	if err != nil || len(list.Members) != 2 || list.Members[0].IsLearner || list.Members[1].IsLearner {
		t.Errorf("members %v, %v", list, err)
	}
}

// TestLearnerThatRunsIsNotRemoved: another process runs the member, which has no vote yet, and this one has an empty directory.
func TestLearnerThatRunsIsNotRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	defer c.found().Close()
	learner := c.open(1)
	defer learner.Close()
	if err := learner.enter(t.Context(), c.record.Load(), Installation{Tell: func(Step, string) {}}); err != nil {
		t.Fatal(err)
	}
	<-learner.etcd.Server.ReadyNotify()
	other, err := Open(Config{DataDir: filepath.Join(c.dir, "elsewhere"), QuotaBytes: 64 << 20, Ephemeral: true, Cluster: c.config(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := c.join(other); err == nil || !strings.Contains(err.Error(), "stop the other process that runs m-1") {
		t.Errorf("while the learner answers: %v", err)
	}
	if learner.etcd.Server.Cluster().Member(types.ID(learner.added)) == nil {
		t.Error("the learner was removed")
	}
}

func TestMembersTakeCertificatesOfTheirAuthorityOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	defer c.found().Close()
	good := c.certificates
	reach := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.client(0).Get(ctx, "key")
		return err
	}
	if err := reach(); err != nil {
		t.Fatal(err)
	}
	c.certificates = filepath.Join(c.dir, "foreign")
	c.issue(c.certificates, newAuthority(t), c.signer.Certificate)
	if err := reach(); err == nil {
		t.Error("a certificate of another authority is accepted")
	}
	for _, port := range []int{clientPort, peerPort} {
		if err := c.connect(port); err == nil || !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("port %d without a certificate: %v", port, err)
		}
	}
	// A new pair needs no restart.
	c.certificates = good
	c.issue(c.certificates, c.signer, c.signer.Certificate)
	defer c.run(1).Close()
	if err := reach(); err != nil {
		t.Error(err)
	}
}
