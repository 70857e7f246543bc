// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

var tokenReviews = regexp.MustCompile(`(?m)^apiserver_delegated_authn_request_total\{code="([^"]*)"\} (\d+)$`)

// TestInvalidTokens sends more invalid tokens from one address than are looked at.
func TestInvalidTokens(t *testing.T) {
	tier.Safety(t)
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	e := newEnv(t, server, server.Config(t))
	const sent, atATime, perSecond = 150, 100, 10
	begin := time.Now()
	atOnce(sent, func(i int) {
		config := server.Anonymous(t)
		config.BearerToken = fmt.Sprintf("invented-%d", i)
		if code, body := framework.Get(t, config, "/apis"); code != http.StatusUnauthorized {
			t.Errorf("an invented token gets %d: %s", code, body)
		}
	})
	elapsed := time.Since(begin)
	code, metrics := framework.Get(t, server.Config(t), "/metrics")
	// Reviews that a slow kube-apiserver does not answer in time have another code.
	asked, answered := 0, 0
	for _, found := range tokenReviews.FindAllStringSubmatch(metrics, -1) {
		n, err := strconv.Atoi(found[2])
		if err != nil {
			t.Fatal(err)
		}
		if asked += n; found[1] == strconv.Itoa(http.StatusCreated) {
			answered = n
		}
	}
	if code != http.StatusOK || asked < sent || answered > sent || float64(answered) > atATime+perSecond*elapsed.Seconds()+1 {
		t.Errorf("metrics answer %d, with %d token reviews, %d of them answered, for %d invented tokens in %s, want %d at once and %d a second",
			code, asked, answered, sent, elapsed, atATime, perSecond)
	}
	e.create(t, jobSet("other-credentials"))
}

// BenchmarkDeleteByName deletes sets by name through kube-apiserver, with 50 requests at a time of one user, about whom
// our server has to ask for each name. Run it with -benchtime=5000x.
func BenchmarkDeleteByName(b *testing.B) {
	server := plane.StartServer(b, framework.Embedded(framework.ShortDir(b))...)
	plane.Aggregate(b, server)
	user, err := plane.AddUser("deleter")
	if err != nil {
		b.Fatal(err)
	}
	config := user.Config()
	config.QPS = -1
	e := newEnv(b, server, config)
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"jobset.x-k8s.io"}, Resources: []string{"jobsets"}, Verbs: []string{"*"}}}
	e.allow(b, rules, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "deleter"})
	admin := clientset(b, server.Config(b)).JobSets(e.namespace)
	atOnce(b.N, func(i int) {
		if _, err := admin.Create(b.Context(), jobSet(fmt.Sprintf("set-%d", i)), metav1.CreateOptions{}); err != nil {
			b.Error(err)
		}
	})
	framework.Eventually(b, "the permission is known", e.canList)
	b.ResetTimer()
	atOnce(b.N, func(i int) {
		if err := e.typed.Delete(b.Context(), fmt.Sprintf("set-%d", i), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			b.Error(err)
		}
	})
	b.ReportMetric(b.Elapsed().Seconds(), "s")
}

// atOnce calls f for the numbers below n, 50 at a time.
func atOnce(n int, f func(i int)) {
	numbers := make(chan int)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			for i := range numbers {
				f(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	group.Wait()
}
