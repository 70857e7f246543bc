// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// members makes the store an embedded etcd with three members, of which some have an empty data directory.
func (i *installation) members(t *testing.T, empty ...string) {
	t.Helper()
	c := &witness.Cluster{ID: "c1"}
	alive := i.health.Etcd[0]
	i.health.Etcd = nil
	for n := range 3 {
		name := fmt.Sprintf("server-%d", n)
		alive.Endpoint, alive.Leader = fmt.Sprintf("https://jobset-apiserver-member-%d.jobset-system.svc:2379", n), n == 1
		i.health.Etcd = append(i.health.Etcd, alive)
		c.Members = append(c.Members, witness.Member{Name: name, ID: fmt.Sprint("m", n)})
		if n > 0 {
			i.objects = append(i.objects, readyPod(name, serverName))
		}
	}
	for _, name := range empty {
		c.Empty = append(c.Empty, witness.EmptyMember{Name: name, Time: metav1.NewTime(now.Add(-20 * time.Second))})
	}
	i.record = record(t, witness.Record{Cluster: c})
}

// withMembers is a fault of an installation with three members.
func withMembers(seed func(etcd []selfcheck.Member)) func(*testing.T, *installation) {
	return func(t *testing.T, i *installation) {
		i.members(t)
		seed(i.health.Etcd)
	}
}

func TestThreeMembersAreWell(t *testing.T) {
	i := healthy(t)
	i.members(t)
	const want = "the embedded etcd (3 members) 3.7.3 answers in 3 ms"
	for _, result := range i.built(t).examine(t.Context()).Checks {
		if result.Status != OK || result.Name == "etcd" && !strings.HasPrefix(result.Message, want) {
			t.Errorf("%+v", result)
		}
	}
}

func TestFaultsOfTheMembers(t *testing.T) {
	const pages = "docs/operations/runbooks/"
	// without makes the pods of all servers unready.
	without := func(t *testing.T, i *installation, empty ...string) {
		unreadyServer(i)
		i.members(t, empty...)
		i.objects = nil
	}
	for name, f := range map[string]fault{
		"a member does not answer": {withMembers(func(etcd []selfcheck.Member) {
			etcd[2] = selfcheck.Member{Endpoint: etcd[2].Endpoint, Error: "connection refused"}
		}), "etcd", Warn, "1 of 3 members of the embedded etcd do not answer: server-2: connection refused",
			"kubectl -n jobset-system describe pod server-2 # " + pages + "JobSetStoreMemberAway.md"},
		"a member has no vote": {withMembers(func(etcd []selfcheck.Member) { etcd[2].Learner = true }), "etcd", Warn,
			"server-2 has no vote in the embedded etcd yet: it still receives the data of the other members",
			"kubectl -n jobset-system logs server-2 --tail=20 # " + pages + "JobSetStoreLearnerStuck.md"},
		"a member is cut off": {withMembers(func(etcd []selfcheck.Member) { etcd[0].NoLeader = true }), "etcd", Warn,
			"server-0 reaches no leader of the embedded etcd",
			"kubectl -n jobset-system logs server-0 --tail=20 # " + pages + "JobSetStoreNoLeader.md"},
		"no leader": {withMembers(func(etcd []selfcheck.Member) {
			etcd[0].NoLeader, etcd[1] = true, selfcheck.Member{Endpoint: etcd[1].Endpoint, Error: "connection refused"}
			etcd[2] = selfcheck.Member{Endpoint: etcd[2].Endpoint, Error: "connection refused"}
		}), "etcd", Fail, "the embedded etcd has no leader, because too few of its members reach each other; server-1: connection refused, " +
			"server-2: connection refused", pages + "JobSetStoreNoLeader.md"},
		"no leader, and no server answers": {func(t *testing.T, i *installation) {
			without(t, i)
			i.answers = map[string]answer{readyzPath: {code: http.StatusInternalServerError, body: []byte("[-]etcd failed: reason withheld\n")}}
		}, "etcd", Fail, "the server does not reach its store: its readiness check etcd fails", pages + "JobSetStoreNoLeader.md"},
		"two members have lost their data": {func(t *testing.T, i *installation) { without(t, i, "server-2", "server-0") }, "store", Fail,
			"the data directories of server-0 and server-2 are empty, so that most members of the embedded etcd have lost their data",
			"docs/operations/backup.md#restore"},
		"an external etcd without a leader": {func(_ *testing.T, i *installation) { i.health.Etcd[0].NoLeader = true }, "etcd", Fail,
			"etcd has no leader, because too few of its members reach each other", "get pods,pvc"},
	} {
		t.Run(name, f.check)
	}
}
