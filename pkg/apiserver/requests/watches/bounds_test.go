// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/space"
)

// fakeMemory has room for watches unless objects take it.
type fakeMemory struct {
	use
	full, garbage bool
}

func (m *fakeMemory) SetWatches(number int, bytes int64) { m.use = use{number, bytes} }
func (m *fakeMemory) Fits(int64) bool                    { return !m.full }
func (m *fakeMemory) Collect()                           { m.full = m.full && !m.garbage }

const (
	// alone is what a watch takes with its connection, and beside what it takes on a connection that has others.
	alone, beside = watchMemory + connectionMemory, watchMemory
	mib           = 1 << 20
)

// TestRefusedWatches wants a message that says which bound is reached, who has how many watches, and what to do.
func TestRefusedWatches(t *testing.T) {
	registerMetrics()
	begun, end := make(chan struct{}), make(chan struct{})
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	memory := &fakeMemory{}
	h := &handler{
		next:   http.HandlerFunc(func(http.ResponseWriter, *http.Request) { begun <- struct{}{}; <-end }),
		codecs: serializer.NewCodecFactory(scheme), shared: newBudget(clock.RealClock{}, writeGrace, space.DefaultMemory),
		bounds: newBounds(memory, 0),
	}
	connections := 0
	serve := func(verb, name string, groups ...string) *httptest.ResponseRecorder {
		ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: name, Groups: groups})
		ctx = request.WithRequestInfo(ctx, &request.RequestInfo{Verb: verb})
		answer := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/apis", nil)
		connections++
		req.RemoteAddr = fmt.Sprintf("192.0.2.1:%d", connections)
		if name == "console" {
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "websocket")
		}
		h.ServeHTTP(answer, req)
		return answer
	}
	ended, serving := make(chan struct{}), 0
	begin := func(verb, name string, groups ...string) {
		t.Helper()
		go func() {
			serve(verb, name, groups...)
			ended <- struct{}{}
		}()
		select {
		case <-begun:
			serving++
		case <-ended:
			t.Errorf("%s: a %s is refused", name, verb)
		}
	}
	refuses := func(name, want string) {
		t.Helper()
		answer := serve("watch", name)
		var status metav1.Status
		if err := json.Unmarshal(answer.Body.Bytes(), &status); err != nil {
			t.Fatal(err)
		}
		want += "; use fewer, let more of them share a connection, or give the server more memory"
		if memory.full {
			want += ", or delete JobSets"
		}
		if status.Message != want || answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") != "5" {
			t.Errorf("code %d, retry after %q, message:\n%s\nwant 429, 5 and:\n%s", answer.Code, answer.Header().Get("Retry-After"), status.Message, want)
		}
	}
	// The memory is changed while nothing begins.
	b := h.bounds
	b.perUser, b.perNamespace, b.unreserved, b.total = 6*alone, 100*mib, 100*mib, 100*mib
	for range 6 {
		begin("watch", "alice")
	}
	refuses("alice", `user "alice" has 6 watches already, counted at 1 MiB, which is the most for one user`)
	begin("list", "alice")
	b.perUser, b.perNamespace = 100*mib, 2*alone
	begin("watch", "system:serviceaccount:team:a")
	begin("watch", "system:serviceaccount:team:b")
	refuses("system:serviceaccount:team:c", `the service accounts of namespace "team" have 2 watches already, counted at 0 MiB, which is the most for one namespace`)
	begin("watch", "system:serviceaccount:other:a")
	begin("watch", "console")
	memory.full = true
	refuses("bob", `there are 10 watches already, counted at 4 MiB, and stored objects leave no memory for more`)
	memory.full = false
	b.unreserved, b.total = b.all.bytes, b.all.bytes+alone
	refuses("bob", `there are 10 watches already, counted at 4 MiB, and the rest of the memory for watches is reserved for administrators and controllers of the cluster`)
	begin("watch", "admin", user.SystemPrivilegedGroup)
	refuses("console", `there are 11 watches already, counted at 4 MiB, which is the most for the memory of this server`)
	close(end)
	for range serving {
		<-ended
	}
	if b.all != (use{}) || memory.use != (use{}) || len(b.users)+len(b.namespaces)+len(b.connections) != 0 {
		t.Errorf("%v are left: of users %v, of namespaces %v, on connections %v", b.all, b.users, b.namespaces, b.connections)
	}
}

// TestGarbageLeavesRoomForWatches has objects that are garbage by now.
func TestGarbageLeavesRoomForWatches(t *testing.T) {
	b := newBounds(&fakeMemory{full: true, garbage: true}, space.DefaultMemory)
	if err := b.begin(watch{account: account{user: "alice"}, connection: "a"}); err != nil {
		t.Error(err)
	}
}

// TestWatchesOnConnections wants a connection to count once, for an account that has watches on it, until the last of them ends.
func TestWatchesOnConnections(t *testing.T) {
	alice, bob := account{user: "alice"}, account{user: "system:serviceaccount:team:bob", namespace: "team"}
	b := newBounds(&fakeMemory{}, space.DefaultMemory)
	want := func(when string, ofAlice, ofBob int64) {
		t.Helper()
		if b.users[alice.user].bytes != ofAlice || b.users[bob.user].bytes != ofBob || b.namespaces["team"].bytes != ofBob || b.all.bytes != ofAlice+ofBob {
			t.Errorf("%s: users have %v, namespaces %v, all %v; want %d and %d bytes", when, b.users, b.namespaces, b.all, ofAlice, ofBob)
		}
	}
	step := func(when string, change func(watch), w watch, ofAlice, ofBob int64) {
		t.Helper()
		change(w)
		want(when, ofAlice, ofBob)
	}
	begin := func(w watch) {
		if err := b.begin(w); err != nil {
			t.Fatal(err)
		}
	}
	step("the first watch", begin, watch{account: alice, connection: "1"}, alone, 0)
	step("another connection", begin, watch{account: alice, connection: "2"}, 2*alone, 0)
	step("another watch on the first", begin, watch{account: alice, connection: "1"}, 2*alone+beside, 0)
	step("of another account", begin, watch{account: bob, connection: "1"}, 2*alone+beside, beside)
	step("the first one ends", b.end, watch{account: alice, connection: "1"}, 2*alone, beside)
	step("the second one ends", b.end, watch{account: alice, connection: "1"}, alone, alone)
	step("the last one on the first connection ends", b.end, watch{account: bob, connection: "1"}, alone, 0)
	step("over WebSocket", begin, watch{account: bob, connection: "3", webSocket: true}, alone, webSocketMemory+connectionMemory)
	step("over WebSocket ends", b.end, watch{account: bob, connection: "3", webSocket: true}, alone, 0)
	step("all end", b.end, watch{account: alice, connection: "2"}, 0, 0)
	if len(b.users)+len(b.namespaces)+len(b.connections) != 0 {
		t.Errorf("users %v, namespaces %v and connections %v are left", b.users, b.namespaces, b.connections)
	}
}

// TestReserve begins watches of two service accounts of one namespace, and of two of others, until they are refused. What is left is
// enough for the controllers of the cluster.
func TestReserve(t *testing.T) {
	b, connections := newBounds(&fakeMemory{}, 1843*mib), 0
	fill := func(u user.Info, most int) (n int) {
		for ; n < most; n++ {
			connections++
			if b.begin(watch{account: accountOf(u), connection: fmt.Sprint(connections)}) != nil {
				break
			}
		}
		return n
	}
	serviceAccount := func(namespace, name string) user.Info {
		return &user.DefaultInfo{Name: "system:serviceaccount:" + namespace + ":" + name, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}}
	}
	fill(serviceAccount("team", "a"), 100_000)
	fill(serviceAccount("team", "b"), 100_000)
	if n := fill(serviceAccount("kueue-system", "kueue-controller-manager"), 100); n != 100 {
		t.Errorf("Kueue gets %d of 100 watches beside two accounts of one namespace", n)
	}
	fill(serviceAccount("other", "a"), 100_000)
	fill(&user.DefaultInfo{Name: "mallory"}, 100_000)
	if n := fill(serviceAccount("kueue-system", "kueue-controller-manager"), 1); n != 0 {
		t.Error("the reserve is open for all")
	}
	for name, u := range map[string]user.Info{
		"an administrator":        &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}},
		"the controller manager":  &user.DefaultInfo{Name: user.KubeControllerManager},
		"the garbage collector":   serviceAccount("kube-system", "generic-garbage-collector"),
		"the quota controller":    serviceAccount("kube-system", "resourcequota-controller"),
		"our controller":          serviceAccount(helper.ControllerNamespace, "jobset-controller-manager"),
		"our server":              serviceAccount(helper.ControllerNamespace, "jobset-apiserver"),
		"a user in masters and x": &user.DefaultInfo{Name: "eve", Groups: []string{"x", user.SystemPrivilegedGroup}},
	} {
		if n := fill(u, 50); n != 50 {
			t.Errorf("%s gets %d of 50 watches from the reserve", name, n)
		}
	}
	// A group says who belongs to kube-system. A name that only begins like one of its accounts does not.
	for _, name := range []string{"system:serviceaccount:kube-system-2:a", "kube-system", "system:masters"} {
		if n := fill(&user.DefaultInfo{Name: name}, 1); n != 0 {
			t.Errorf("%s may use the reserve", name)
		}
	}
}

// TestBoundsFollowFromTheMemory has the figures of docs/server.md.
func TestBoundsFollowFromTheMemory(t *testing.T) {
	for _, tc := range []struct {
		memory                                      int64
		webSocket                                   bool
		perConnection, user, namespace, others, all int
	}{
		{memory: 1843 * mib, perConnection: 1, user: 5026, namespace: 5361, others: 6031, all: 6701},
		{memory: 1843 * mib, perConnection: 100, user: 9138, namespace: 9746, others: 10_964, all: 12_182},
		{memory: 1843 * mib, perConnection: 1, webSocket: true, user: 280, namespace: 299, others: 336, all: 374},
		{memory: 1 << 30, perConnection: 1, user: 2792, namespace: 2978, others: 3351, all: 3723},
		{memory: 2 << 30, perConnection: 1, user: 5585, namespace: 5957, others: 6702, all: 7447},
		{memory: 4 << 30, perConnection: 1, user: 11_170, namespace: 11_915, others: 13_405, all: 14_894},
		{memory: 4 << 30, perConnection: 100, user: 20_310, namespace: 21_663, others: 24_371, all: 27_078},
	} {
		b, connections := newBounds(&fakeMemory{}, tc.memory), 0
		// fill begins watches of accounts until they are refused. Each account has connections of its own.
		fill := func(accounts ...account) int {
			for _, a := range accounts {
				for n := 0; ; n++ {
					if n%tc.perConnection == 0 {
						connections++
					}
					if b.begin(watch{account: a, connection: fmt.Sprint(connections), webSocket: tc.webSocket}) != nil {
						break
					}
				}
				connections++
			}
			return b.all.watches
		}
		user := fill(account{user: "a", namespace: "team"})
		namespace := fill(account{user: "b", namespace: "team"})
		others := fill(account{user: "c"}, account{user: "d"})
		all := fill(account{user: "e", reserved: true})
		if user != tc.user || namespace != tc.namespace || others != tc.others || all != tc.all {
			t.Errorf("%d MiB, %d on a connection: %d watches of a user, %d of a namespace, %d of others and %d of all, want %d, %d, %d and %d", tc.memory>>20,
				tc.perConnection, user, namespace, others, all, tc.user, tc.namespace, tc.others, tc.all)
		}
	}
}
