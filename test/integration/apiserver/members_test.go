// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// trio are three servers, each with a member of an embedded etcd.
type trio struct {
	*testing.T
	kubeconfig, dir string
	admin           *envtest.AuthenticatedUser
	hosts           []string
	port            int
	servers         [3]*framework.Server
}

// newTrio creates what the manifests have for three servers.
func newTrio(t *testing.T) *trio {
	t.Helper()
	newInstallation(t)
	for _, name := range []string{servingSecret, servingSecret + "-peers"} {
		secrets := plane.Kube.CoreV1().Secrets(apiservice.Namespace)
		if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = secrets.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
	}
	allowPeers(t)
	kubeconfig, err := plane.Kubeconfig("store-admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	admin, err := plane.AddUser("test-admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	c := &trio{T: t, kubeconfig: kubeconfig, admin: admin, dir: framework.ShortDir(t), port: framework.FreePort(t)}
	pid := os.Getpid()
	for n := range 3 {
		c.hosts = append(c.hosts, fmt.Sprintf("127.%d.%d.%d", 1+pid>>8%250, pid%256, 240+n))
	}
	return c
}

// allowPeers lets servers keep the certificates of the members.
func allowPeers(t *testing.T) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: apiservice.Namespace, Name: "peers"}
	roles, bindings := plane.Kube.RbacV1().Roles(meta.Namespace), plane.Kube.RbacV1().RoleBindings(meta.Namespace)
	_, err := roles.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{servingSecret + "-peers"}, Verbs: []string{"get", "list", "watch", "update"},
	}}}, metav1.CreateOptions{})
	if err == nil {
		_, err = bindings.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: framework.ServerUser}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, _ = roles.Delete(ctx, meta.Name, metav1.DeleteOptions{}), bindings.Delete(ctx, meta.Name, metav1.DeleteOptions{})
	})
}

func (c *trio) data(n int) string { return filepath.Join(c.dir, strconv.Itoa(n)) }

// start starts servers, and does not wait for them.
func (c *trio) start(ordinals ...int) {
	c.Helper()
	for _, n := range ordinals {
		c.servers[n] = plane.LaunchServer(c.T, append(withWitness(framework.Embedded(c.data(n))...), "--bind-address="+c.hosts[n],
			"--secure-port="+strconv.Itoa(c.port), "--pod-name=js-"+strconv.Itoa(n), "--embedded-etcd-members="+strings.Join(c.hosts, ","),
			"--tls-managed-secret="+apiservice.Namespace+"/"+servingSecret)...)
	}
}

// config reaches one server directly.
func (c *trio) config(n int) *rest.Config {
	c.Helper()
	secret, err := plane.Kube.CoreV1().Secrets(apiservice.Namespace).Get(c.Context(), servingSecret, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return &rest.Config{
		Host: "https://" + net.JoinHostPort(c.hosts[n], strconv.Itoa(c.port)), QPS: -1, Timeout: 10 * time.Second,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: secret.Data["ca.crt"], ServerName: apiservice.Hosts()[0], CertData: c.admin.Config().CertData, KeyData: c.admin.Config().KeyData,
		},
	}
}

func (c *trio) awaitReady(ordinals ...int) {
	c.Helper()
	for _, n := range ordinals {
		if err := c.servers[n].Await(c.Context(), "is ready", func(context.Context) error {
			if code, body := c.get(n, "/readyz?verbose"); code != http.StatusOK {
				return errors.New(body)
			}
			return nil
		}); err != nil {
			c.Fatal(err)
		}
	}
}

// get asks a server, which may not have a certificate yet.
func (c *trio) get(n int, path string) (code int, body string) {
	c.Helper()
	config := c.config(n)
	if len(config.CAData) == 0 {
		return 0, "there is no authority yet"
	}
	return framework.Get(c.T, config, path)
}

// writes creates a JobSet through one server within the time that the election of a leader may take, and returns how long it took.
func (c *trio) writes(e *env, n int, name string) time.Duration {
	c.Helper()
	begin, sets := time.Now(), clientset(c.T, c.config(n)).JobSets(e.namespace)
	framework.Eventually(c.T, "server "+strconv.Itoa(n)+" creates "+name, func(ctx context.Context) error {
		_, err := sets.Create(ctx, jobSet(name), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // an attempt whose answer was lost
			err = nil
		}
		return err
	})
	return time.Since(begin)
}

// names lists the JobSets that a server has.
func (c *trio) names(e *env, n int) (names []string) {
	c.Helper()
	list, err := clientset(c.T, c.config(n)).JobSets(e.namespace).List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	for _, set := range list.Items {
		names = append(names, set.Name)
	}
	return names
}

// awaitMembers waits until the record has three members with a vote, and returns them.
func (c *trio) awaitMembers() (members []witness.Member) {
	c.Helper()
	framework.Eventually(c.T, "the record has three members", func(context.Context) error {
		r := record(c.T)
		if r == nil || r.Cluster == nil || len(r.Cluster.Members) != 3 ||
			slices.ContainsFunc(r.Cluster.Members, func(m witness.Member) bool { return m.Learner }) {
			return fmt.Errorf("the record is %+v", r)
		}
		members = r.Cluster.Members
		return nil
	})
	return members
}

// awaitEvents waits until events on the record have these reasons.
func (c *trio) awaitEvents(reasons ...string) {
	c.Helper()
	framework.Eventually(c.T, "events tell the steps", func(ctx context.Context) error {
		events, err := plane.Kube.CoreV1().Events(witness.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, reason := range reasons {
			if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == reason && e.InvolvedObject.Name == witness.Name }) {
				return fmt.Errorf("no event has the reason %s", reason)
			}
		}
		return nil
	})
}

func (c *trio) kill(ordinals ...int) {
	for _, n := range ordinals {
		c.servers[n].Kill()
	}
}

func (c *trio) lose(ordinals ...int) {
	c.Helper()
	c.kill(ordinals...)
	for _, n := range ordinals {
		if err := os.RemoveAll(c.data(n)); err != nil {
			c.Fatal(err)
		}
	}
}

// TestThreeMembers is the life of three servers with an embedded etcd: each is killed, one loses its data, and then two do.
func TestThreeMembers(t *testing.T) {
	tier.OnRequest(t, "three servers form a cluster of embedded members several times")
	c := newTrio(t)
	c.start(2, 1, 0)
	c.awaitReady(0, 1, 2)
	before := c.awaitMembers()
	e := newEnv(t, c.servers[0], c.config(0))
	c.writes(e, 1, "begin")
	want := []string{"begin"}
	for n := range 3 {
		c.kill(n)
		name := "killed-" + strconv.Itoa(n)
		t.Logf("%s: written after %s", name, c.writes(e, (n+1)%3, name))
		want = append(want, name)
		c.start(n)
		c.awaitReady(n)
		if got := c.names(e, n); !slices.Equal(got, want) {
			t.Errorf("server %d has %v, want %v", n, got, want)
		}
	}

	c.lose(1)
	begin := time.Now()
	c.start(1)
	c.awaitReady(1)
	t.Logf("server 1 is ready %s after its start without data", time.Since(begin))
	c.awaitEvents("StoreMemberRemoved", "StoreMemberAdded", "StoreMemberPromoted")
	framework.Eventually(t, "the record has the new member", func(context.Context) error {
		after := c.awaitMembers()
		if after[1].ID == before[1].ID || after[0] != before[0] || after[2] != before[2] {
			return fmt.Errorf("the members are %v, were %v", after, before)
		}
		return nil
	})
	c.writes(e, 1, "replaced")
	want = append(want, "replaced")
	c.loseTwo(e, want)
}

// loseTwo lets two servers lose their data, and restores what the third one has.
func (c *trio) loseTwo(e *env, want []string) {
	c.Helper()
	c.lose(0, 2)
	c.start(0, 2)
	c.awaitEvents("StoreLost")
	for n := range 3 {
		if code, body := c.get(n, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/"+e.namespace+"/jobsets/begin"); code == http.StatusOK || code == http.StatusNotFound {
			c.Errorf("server %d: code %d: %s", n, code, body)
		}
	}
	expectStore(c.T, c.kubeconfig, []string{"status"}, 2, "Lost:", "the data of js-0 and js-2, which is most of the members")
	c.kill(0, 1, 2)
	file := filepath.Join(c.dir, "backup.db")
	storeTool(c.T, 0, "verified.", "backup", file, "--data-dir="+c.data(1), "--stopped")
	storeTool(c.T, 0, "Restored", "restore", file, "--data-dir="+c.data(0))
	c.start(0)
	refusal := awaitRefusal(c.T, witness.ReasonRolledBack)
	expectStore(c.T, c.kubeconfig, []string{"accept", "--uuid=" + refusal.NewUUID, "--revision=" + strconv.FormatInt(refusal.Revision, 10)}, 0)
	c.awaitReady(0)
	c.start(1) // with the data of the former cluster
	if code := c.servers[1].Wait(c.T); code == 0 || !strings.Contains(c.servers[1].Log(), "belongs to another cluster") {
		c.Errorf("the server with the data of the former cluster ends with code %d: %s", code, c.servers[1].Log())
	}
	storeTool(c.T, 0, "joins the others", "rejoin", "--data-dir="+c.data(1))
	c.start(1, 2)
	c.awaitReady(0, 1, 2)
	c.awaitMembers()
	for n := range 3 {
		if got := c.names(e, n); !slices.Equal(got, want) {
			c.Errorf("server %d has %v after the restore, want %v", n, got, want)
		}
	}
}
