// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// health is what the plugin says.
type health struct {
	Status      string
	FirstBroken string
	Checks      []struct{ Name, Status, Message, Fix string }
}

// clinic is a cluster with both programs and a user who has the roles for the doctor.
type clinic struct {
	etcd               *framework.Etcd
	server             *framework.Server
	controller         *framework.Process
	plugin, manager    string
	kubeconfig, nobody string
}

// newClinic starts both programs on an etcd of 70 MiB.
func newClinic(t *testing.T) *clinic {
	t.Helper()
	newInstallation(t)
	c := &clinic{
		etcd:   plane.StartEtcd(t, "--quota-backend-bytes=73400320"),
		plugin: plane.Own("kubectl-jobset"), manager: plane.Own("jobset-controller"),
	}
	c.server = plane.StartServer(t, withWitness(c.etcd.Flags...)...)
	plane.Aggregate(t, c.server)
	c.startController(t)
	var err error
	if c.kubeconfig, err = plane.Kubeconfig("doctor", "on-call"); err != nil {
		t.Fatal(err)
	}
	if c.nobody, err = plane.Kubeconfig("nobody"); err != nil {
		t.Fatal(err)
	}
	c.grant(t)
	return c
}

// grant binds both roles as the documentation says.
func (c *clinic) grant(t *testing.T) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "jobset-doctor", Namespace: "jobset-system"}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "on-call"}}
	role := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}
	if _, err := plane.Kube.RbacV1().RoleBindings(meta.Namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	all := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: meta.Name}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}}
	if _, err := plane.Kube.RbacV1().ClusterRoleBindings().Create(t.Context(), all, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := plane.Kube.RbacV1().RoleBindings(meta.Namespace).Delete(ctx, meta.Name, metav1.DeleteOptions{})
		if err = errors.Join(err, plane.Kube.RbacV1().ClusterRoleBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{})); err != nil {
			t.Error(err)
		}
	})
}

func (c *clinic) startController(t *testing.T, flags ...string) {
	t.Helper()
	kubeconfig, err := plane.Kubeconfig("system:serviceaccount:jobset-system:jobset-controller-manager",
		"system:serviceaccounts", "system:serviceaccounts:jobset-system", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	c.controller = framework.Run(t, c.manager, append([]string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=true", "--leader-elect-resource-namespace=jobset-system", "--metrics-bind-address=0",
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", framework.FreePort(t)),
	}, flags...)...)
}

// examine runs the plugin. It must end within 20 seconds and a little more for its start.
func (c *clinic) examine(kubeconfig string) (*health, error) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, c.plugin, "doctor", "--kubeconfig="+kubeconfig, "-o", "json")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	h := &health{}
	if problem := json.Unmarshal(out, h); problem != nil {
		return nil, fmt.Errorf("%w (%v): %s%s", problem, err, out, stderr.String())
	}
	if code := cmd.ProcessState.ExitCode(); (code == 1) != (h.Status == "fail") {
		return nil, fmt.Errorf("status %s with exit code %d", h.Status, code)
	}
	return h, nil
}

// awaitHealthy waits until nothing is to be repaired.
func (c *clinic) awaitHealthy(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "the doctor finds nothing", func(context.Context) error {
		h, err := c.examine(c.kubeconfig)
		if err != nil {
			return err
		}
		for _, check := range h.Checks {
			if check.Status != "ok" || check.Fix != "" {
				err = errors.Join(err, fmt.Errorf("%+v", check))
			}
		}
		return err
	})
}

// ward is what a fault needs.
type ward struct {
	*testing.T
	*clinic
	// suite is the test of all faults: what it starts outlives a fault.
	suite *testing.T
}

// finds waits until the doctor names the fault: with this status and these texts in the line of the hop, which is the
// first broken one if it fails.
func (w ward) finds(hop, status, fix string, texts ...string) {
	w.Helper()
	framework.Eventually(w, "the doctor names "+hop, func(context.Context) error {
		h, err := w.examine(w.kubeconfig)
		if err != nil {
			return err
		}
		first := map[bool]string{true: hop}[status == "fail"]
		for _, check := range h.Checks {
			missing := slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(check.Message, text) })
			if check.Name == hop && check.Status == status && !missing && strings.Contains(check.Fix, fix) && h.FirstBroken == first {
				w.Logf("[%s] %s: %s\n    fix: %s", check.Status, check.Name, check.Message, check.Fix)
				return nil
			}
		}
		return fmt.Errorf("%+v", h)
	})
}

// TestDoctor runs both programs, seeds one fault after the other and wants each to be named, by a user who has no more
// than the roles for the doctor. With JOBSET_DOCTOR_ALL, it seeds all of them.
func TestDoctor(t *testing.T) {
	tier.OnRequest(t, "breaks the control plane in many ways")
	c := newClinic(t)
	c.awaitHealthy(t)
	suite, begin := t, time.Now()
	if _, err := c.examine(c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Logf("a run in a healthy cluster takes %s", time.Since(begin))
	h, err := c.examine(c.nobody)
	if err != nil || h.Status != "warn" {
		t.Errorf("without permissions: %+v (%v)", h, err)
	}
	all := os.Getenv("JOBSET_DOCTOR_ALL") != ""
	for _, group := range []map[string]func(ward){registrationFaults, certificateFaults, podFaults, rightsFaults, controllerFaults, otherFaults} {
		for name, seed := range group {
			if all || slices.Contains(quickFaults, name) {
				t.Run(name, func(t *testing.T) { seed(ward{t, c, suite}) })
			}
		}
	}
	c.awaitHealthy(t)
	for _, name := range []string{"etcd is away", "etcd is nearly full", "the server refuses its store", "the server is away"} {
		if all || slices.Contains(quickFaults, name) {
			t.Run(name, func(t *testing.T) { lastFaults[name](ward{t, c, suite}) })
		}
	}
}

// quickFaults are the faults that are always seeded. kube-apiserver looks at APIServices every half minute, so that all
// faults take several minutes.
var quickFaults = []string{"caBundle wrong", "auth-delegator gone", "lease stale", "webhook missing", "etcd is away"}

// ca waits for the authority of a server that has just been started.
func (w ward) ca(s *framework.Server) (content []byte) {
	w.Helper()
	framework.Eventually(w, "the server has an authority", func(context.Context) (err error) {
		content, err = os.ReadFile(filepath.Join(s.CertDir, "ca.crt"))
		return err
	})
	return content
}
