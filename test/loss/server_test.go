// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// on is the flag for an embedded store.
func on(dir string) string { return "--data-dir=" + dir }

// store returns a directory for another store, which is empty.
func (c *cluster) store(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(c.Dir, "stores", name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copied returns a copy of a store that no server uses.
func (c *cluster) copied(t *testing.T, from, name string) string {
	t.Helper()
	to := c.store(t, name)
	if out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
		t.Fatalf("copying the store: %v: %s", err, out)
	}
	return to
}

// stop ends the server in good order.
func (c *cluster) stop(t *testing.T) {
	t.Helper()
	if c.server == nil {
		return
	}
	if err := c.server.Terminate(); err != nil {
		t.Fatal(err)
	}
	c.server = nil
}

// start starts the server.
func (c *cluster) start(t *testing.T, flags ...string) {
	t.Helper()
	c.stop(t)
	command := c.commandFor(flags...)
	p, err := framework.StartProcess(filepath.Join(c.Dir, "logs", "jobset-apiserver.log"), command[0], command[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	c.server = p
}

// serve starts the server, and waits until kube-apiserver reaches it.
func (c *cluster) serve(t *testing.T, flags ...string) {
	t.Helper()
	c.start(t, flags...)
	c.reached(t)
}

// reached waits until all groups are available.
func (c *cluster) reached(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "kube-apiserver reaches the server", func(ctx context.Context) error {
		select {
		case <-c.server.Done():
			t.Fatal("the server has ended: " + tail(c.server.Log()))
		default:
		}
		c.touchServices(ctx)
		for _, group := range apiservice.Groups {
			service, err := c.dynamic.Resource(apiservice.Resource).Get(ctx, apiservice.Name(group), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if status, message := apiservice.Available(service); status != "True" {
				return fmt.Errorf("%s: %s", apiservice.Name(group), message)
			}
			// The status may be one from before the server was restarted.
			if err := c.Kube.Discovery().RESTClient().Get().AbsPath("/apis", group.Group, group.Version).Do(ctx).Error(); err != nil {
				return err
			}
		}
		_, err := c.JobSets.JobsetV1alpha2().JobSets("").List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

func tail(log string) string { return log[max(0, len(log)-3000):] }

// touchServices makes kube-apiserver check the server now. Where the server runs in pods, their endpoints do that.
func (c *cluster) touchServices(ctx context.Context) {
	for _, group := range apiservice.Groups {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, time.Now().UnixNano())
		_, _ = c.dynamic.Resource(apiservice.Resource).Patch(ctx, apiservice.Name(group), types.MergePatchType, patch, metav1.PatchOptions{})
	}
}

// refused is refuses for the server behind kube-apiserver.
func (c *cluster) refused(t *testing.T, reason witness.Reason, since time.Time) *witness.Refusal {
	t.Helper()
	refusal := c.refuses(t, reason, since)
	if _, err := c.JobSets.JobsetV1alpha2().JobSets("").List(t.Context(), metav1.ListOptions{Limit: 1}); err == nil {
		t.Error("the server refuses, and lists JobSets")
	}
	return refusal
}

// refuses waits until a server has recorded that it refuses for this reason, since then.
func (c *cluster) refuses(t *testing.T, reason witness.Reason, since time.Time) *witness.Refusal {
	t.Helper()
	var refusal *witness.Refusal
	framework.Eventually(t, "the server refuses", func(ctx context.Context) error {
		record, err := c.record(ctx)
		switch {
		case err != nil:
			return err
		case record.Refusal == nil:
			return errors.New("no refusal is recorded")
		case record.Refusal.Reason != reason || record.Refusal.Time.Time.Before(since.Truncate(time.Second)):
			return fmt.Errorf("the refusal is %+v", record.Refusal)
		}
		refusal = record.Refusal
		return nil
	})
	return refusal
}

func (c *cluster) configMap(ctx context.Context) (*corev1.ConfigMap, error) {
	return c.Kube.CoreV1().ConfigMaps(witness.Namespace).Get(ctx, witness.Name, metav1.GetOptions{})
}

func (c *cluster) record(ctx context.Context) (*witness.Record, error) {
	cm, err := c.configMap(ctx)
	if err != nil {
		return nil, err
	}
	record, err := witness.Read(cm)
	if err == nil && record == nil {
		err = errors.New("there is no record")
	}
	return record, err
}

// run runs one of our programs and returns what it prints and whether it succeeded.
func (c *cluster) run(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), timeout)
	defer stop()
	out, err := exec.CommandContext(ctx, c.Program(program), args...).CombinedOutput()
	return string(out), err
}

// controllerManager returns the process and the command line of kube-controller-manager.
func (c *cluster) controllerManager(t *testing.T) (pid int, command []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(c.Dir, "pids", "kube-controller-manager.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(content))); err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		t.Fatal(err)
	}
	return pid, strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// launch runs a program until the end of all tests, and returns its process.
func (c *cluster) launch(t *testing.T, log string, command []string) (pid int) {
	t.Helper()
	process, err := framework.StartProcess(log, command[0], command[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return process.PID()
}

// etcd is an etcd beside the server, on the files of a store. It runs in the test, because the program of the control
// plane is of an older version.
type etcd struct {
	client, peer url.URL
	*embed.Etcd
}

func newEtcd(t *testing.T) *etcd {
	t.Helper()
	local := func() url.URL {
		return url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", framework.FreePort(t))}
	}
	return &etcd{client: local(), peer: local()}
}

// start starts it on a store that no server uses.
func (e *etcd) start(t *testing.T, store string) {
	t.Helper()
	config := embed.NewConfig()
	config.Dir, config.LogLevel = filepath.Join(store, "etcd"), "panic"
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{e.client}, []url.URL{e.client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{e.peer}, []url.URL{e.peer}
	config.InitialCluster = config.Name + "=" + e.peer.String()
	// The port was in use a moment ago.
	framework.Eventually(t, "etcd starts", func(context.Context) (err error) {
		e.Etcd, err = embed.StartEtcd(config)
		return err
	})
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(timeout):
		t.Fatal("etcd does not serve")
	}
}

// stop ends it; nothing answers then.
func (e *etcd) stop() {
	e.Close()
	e.Etcd = nil
}

func (e *etcd) connect(t *testing.T) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.client.String()}, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
