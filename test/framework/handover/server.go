// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/etcdcluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/replicas"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// StartServer starts our server with an embedded etcd, unless it runs; or, if there are to be several servers, these, and an etcd
// with as many members. It is installed beside the definitions: only the group that no definition has is routed to it.
func (c *Cluster) StartServer(ctx context.Context) error {
	if c.server != nil || c.replicas != nil {
		return nil
	}
	rbac := filepath.Join(c.Root, "artifacts", "base", "rbac")
	if err := c.Script("kubectl", "apply", "--server-side", "--force-conflicts", "-k", rbac); err != nil {
		return err
	}
	if c.Servers > 1 {
		return c.runReplicas(ctx)
	}
	authority, err := framework.NewAuthority("jobset-apiserver")
	if err != nil {
		return err
	}
	ports, err := localcluster.FreePorts(1)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(ports[0])
	if err != nil {
		return err
	}
	if err := c.runServer(ctx, authority, ports[0]); err != nil {
		return err
	}
	if err := c.register(ctx, authority.CA(), port); err != nil {
		return err
	}
	return c.listens(ctx)
}

// listens waits until the server answers connections. It does not serve the groups that kube-apiserver serves from a definition.
func (c *Cluster) listens(ctx context.Context) error {
	return c.server.Await(ctx, "listens", func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// RestartServer starts the only server again, on the same store, with further flags.
func (c *Cluster) RestartServer(ctx context.Context, flags ...string) error {
	if err := c.server.Terminate(); err != nil {
		return err
	}
	if err := c.launch(flags...); err != nil {
		return err
	}
	return c.listens(ctx)
}

func (c *Cluster) launch(flags ...string) (err error) {
	log := filepath.Join(c.Dir, "logs", "jobset-apiserver.log")
	c.server, err = framework.StartProcess(log, c.command[0], slices.Concat(c.command[1:], flags)...)
	return err
}

// runReplicas starts several servers behind a balancer, which passes connections on to those that do not serve yet, too: a migration
// makes the Service publish their addresses.
func (c *Cluster) runReplicas(ctx context.Context) (err error) {
	dir := filepath.Join(c.Dir, "server")
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := c.WriteKubeconfig(ctx, "jobset-apiserver", kubeconfig); err != nil {
		return err
	}
	binaries, err := localcluster.TestBinaries(c.Root)
	if err != nil {
		return err
	}
	if c.etcd, err = etcdcluster.Start(ctx, filepath.Join(binaries, "etcd"), filepath.Join(dir, "members"), c.Servers); err != nil {
		return err
	}
	readiness := replicas.Quick
	readiness.Path = "/livez"
	c.replicas, err = replicas.Start(ctx, replicas.Settings{
		Binary: c.Program("jobset-apiserver"), Kubeconfig: kubeconfig, Dir: filepath.Join(c.Dir, "logs"), Readiness: readiness,
		Flags: append(c.etcd.Flags(), "--feature-gates="+gates),
	}, c.Servers)
	if err != nil {
		return err
	}
	return c.register(ctx, c.replicas.CA, c.replicas.Port)
}

// KillServer kills our servers, if they run, and removes their store.
func (c *Cluster) KillServer() {
	if c == nil {
		return
	}
	if c.server != nil {
		c.server.Kill()
		_ = os.RemoveAll(c.data)
	}
	if c.replicas != nil {
		c.replicas.Close()
	}
	if c.etcd != nil {
		c.etcd.Close()
	}
}

// runServer starts the process.
func (c *Cluster) runServer(ctx context.Context, authority *framework.Authority, port string) error {
	dir := filepath.Join(c.Dir, "server")
	_, cert, key, err := authority.WriteServer(filepath.Join(dir, "tls"), apiservice.Hosts()...)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := c.WriteKubeconfig(ctx, "jobset-apiserver", kubeconfig); err != nil {
		return err
	}
	if c.data, err = os.MkdirTemp("", "js-"); err != nil {
		return err
	}
	c.command = []string{c.Program("jobset-apiserver"),
		"--secure-port=" + port, "--bind-address=127.0.0.1", "--kubeconfig=" + kubeconfig,
		"--tls-cert-file=" + cert, "--tls-private-key-file=" + key,
		"--data-dir=" + c.data, "--allow-ephemeral-data", "--feature-gates=" + gates, "--v=2"}
	return c.launch()
}

// register creates what the component beside-upstream has of the Service, the APIServices and the webhook.
func (c *Cluster) register(ctx context.Context, ca []byte, port int) error {
	c.ca, c.port = ca, port
	for _, service := range apiservice.Services(port) {
		if _, err := c.Kube.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if c.Groups == nil {
		c.Groups = slices.DeleteFunc(slices.Clone(apiservice.Groups), func(g schema.GroupVersion) bool {
			return g.Group == jobsetv1alpha2.SchemeGroupVersion.Group || g.Group == leaderworkersetv1.SchemeGroupVersion.Group
		})
	}
	for _, group := range c.Groups {
		if _, err := c.Dynamic.Resource(apiservice.Resource).Create(ctx, apiservice.New(group, port, ca), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return c.createWebhook(ctx, admissionregistrationv1.MatchCondition{Name: "after-migration", Expression: "false"})
}

func (c *Cluster) createWebhook(ctx context.Context, conditions ...admissionregistrationv1.MatchCondition) error {
	webhook := apiservice.Webhook(c.port, c.ca)
	webhook.Webhooks[0].MatchConditions = conditions
	_, err := c.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, webhook, metav1.CreateOptions{})
	return err
}

// AskAboutPods makes kube-apiserver ask our server about all pods of LeaderWorkerSets, as installations do that serve them.
func (c *Cluster) AskAboutPods(ctx context.Context) error {
	return errors.Join(c.LeavePods(ctx), c.createWebhook(ctx))
}

// LeavePods makes kube-apiserver ask about no pod.
func (c *Cluster) LeavePods(ctx context.Context) error {
	return c.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, apiservice.WebhookName, metav1.DeleteOptions{})
}
