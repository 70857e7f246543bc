// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// component is one of our programs, or the etcd of its own, as it runs in a cluster: with the identity of its service
// account and the permissions of artifacts/base/rbac.
type component struct {
	// name is the one in pids/ and logs/; the control plane has an etcd of its own.
	name  string
	ports []string
	// command returns the command line; the ports have been chosen.
	command func(*supervisor) []string
}

var components = map[string]component{
	"apiserver":  {"jobset-apiserver", []string{"apiserver"}, (*supervisor).apiServerCommand},
	"controller": {"jobset-controller", []string{"controller-metrics", "controller-health"}, (*supervisor).controllerCommand},
	"etcd":       {"jobset-etcd", []string{"etcd", "etcd-peer"}, (*supervisor).etcdCommand},
}

func (c *supervisor) apiServerCommand() []string {
	command := []string{filepath.Join(c.programs, "jobset-apiserver"),
		"--kubeconfig=" + c.path("apiserver.kubeconfig"),
		"--bind-address=127.0.0.1", "--secure-port=" + c.port("apiserver"),
		"--cert-dir=" + c.path("pki", "apiserver"),
		"--tls-san=localhost,127.0.0.1," + strings.Join(apiservice.Hosts(), ","),
		"--shutdown-delay-duration=1s"}
	if c.storage == etcdStorage {
		command = append(command, "--etcd-servers=http://127.0.0.1:"+c.port("etcd"))
	} else {
		command = append(command, "--data-dir="+c.path("data"), "--allow-ephemeral-data")
	}
	if c.auditPolicy != "" {
		command = append(command, "--audit-policy-file="+c.auditPolicy, "--audit-log-path="+c.path("logs", "apiserver-audit.log"))
	}
	return append(command, c.apiServerArgs...)
}

// controllerCommand gives the controller a long lease: nothing restarts it, and one that cannot renew its lease ends,
// which on a slow machine takes more than the usual ten seconds.
func (c *supervisor) controllerCommand() []string {
	return append([]string{filepath.Join(c.programs, "jobset-controller"),
		"--kubeconfig=" + c.path("controller.kubeconfig"),
		"--leader-elect-resource-namespace=" + apiservice.Namespace,
		"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s",
		"--service-endpoints-canary=false", // simulated nodes have no DNS server
		"--metrics-bind-address=127.0.0.1:" + c.port("controller-metrics"),
		"--health-probe-bind-address=127.0.0.1:" + c.port("controller-health")}, c.controllerArgs...)
}

func (c *supervisor) etcdCommand() []string {
	client, peer := "http://127.0.0.1:"+c.port("etcd"), "http://127.0.0.1:"+c.port("etcd-peer")
	return []string{filepath.Join(c.binaries, "etcd"), "--name=jobset", "--data-dir=" + c.path("data", "etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client, "--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer, "--initial-cluster=jobset=" + peer}
}

// startComponent starts a component unless it runs already with the same program and flags.
func (c *supervisor) startComponent(component component) error {
	if pid, ok := c.pid(component.name); ok {
		if c.current(component.name, component.command(c)) {
			return nil
		}
		say("restarting " + component.name + ": its program or flags have changed")
		if err := c.stop(20*time.Second, pid); err != nil {
			return err
		}
	} else {
		say("starting " + component.name)
	}
	for _, port := range component.ports {
		if err := c.choosePort(port); err != nil {
			return err
		}
	}
	return c.start(component.name, component.command(c)...)
}

func (c *supervisor) upEtcd(ctx context.Context) error {
	etcd := components["etcd"]
	if err := c.startComponent(etcd); err != nil {
		return err
	}
	return c.await(ctx, etcd.name, "jobset-etcd is not healthy", func(ctx context.Context) error {
		return healthy(ctx, c.port("etcd"), "/health")
	})
}

func (c *supervisor) upAPIServer(ctx context.Context) error {
	if c.storage == etcdStorage {
		if err := c.upEtcd(ctx); err != nil {
			return err
		}
	}
	server := components["apiserver"]
	if err := c.startComponent(server); err != nil {
		return err
	}
	var ca []byte
	err := c.await(ctx, server.name, "jobset-apiserver wrote no ca.crt", func(context.Context) (err error) {
		if ca, err = os.ReadFile(c.path("pki", "apiserver", "ca.crt")); err == nil && len(ca) == 0 {
			return errors.New("it is empty")
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.register(ctx, ca); err != nil {
		return err
	}
	return c.await(ctx, server.name, "kube-apiserver does not reach JobSets", c.available)
}

// register makes kube-apiserver forward our groups, and ask about pods of LeaderWorkerSets, under the real certificate
// authority of the server.
func (c *supervisor) register(ctx context.Context, ca []byte) error {
	port, err := strconv.Atoi(c.port("apiserver"))
	if err != nil {
		return err
	}
	for _, service := range apiservice.Services(port) {
		if err := c.admin.apply(ctx, "/api/v1/namespaces/"+service.Namespace+"/services/"+service.Name, service); err != nil {
			return err
		}
	}
	for _, group := range c.groups() {
		if err := c.admin.apply(ctx, apiServicePath+apiservice.Name(group), apiservice.New(group, port, ca)); err != nil {
			return err
		}
	}
	return c.admin.apply(ctx, webhookPath+apiservice.WebhookName, apiservice.Webhook(port, ca))
}

const webhookPath = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/"

const apiServicePath = "/apis/apiregistration.k8s.io/v1/apiservices/"

func (c *supervisor) available(ctx context.Context) error {
	var groups apidiscoveryv2.APIGroupDiscoveryList
	if err := c.admin.ask(ctx, http.MethodGet, "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "", nil, &groups); err != nil {
		return err
	}
	for _, group := range c.groups() {
		var object map[string]any
		if err := c.admin.get(ctx, apiServicePath+apiservice.Name(group), &object); err != nil {
			return err
		}
		status, message := apiservice.Available(&unstructured.Unstructured{Object: object})
		if status != "True" {
			return fmt.Errorf("APIService %s: Available is %q: %s", apiservice.Name(group), status, message)
		}
		if err := discovered(&groups, group); err != nil {
			return err
		}
		// Until kube-apiserver has collected the schema of a group, kubectl checks objects by itself, and refuses what the server takes.
		for _, path := range []string{"/apis/", "/openapi/v3/apis/"} {
			if err := c.admin.get(ctx, path+group.String(), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// discovered returns an error unless the document of all groups, which kubectl reads, has the group as it is served now. kube-apiserver keeps
// the version of a server that does not answer, marked as stale.
func discovered(groups *apidiscoveryv2.APIGroupDiscoveryList, group schema.GroupVersion) error {
	for i := range groups.Items {
		if groups.Items[i].Name != group.Group {
			continue
		}
		for _, version := range groups.Items[i].Versions {
			if version.Version == group.Version && version.Freshness == apidiscoveryv2.DiscoveryFreshnessCurrent && len(version.Resources) > 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is not discovered, or only with earlier resources", group)
}

func (c *supervisor) upController(ctx context.Context) error {
	controller := components["controller"]
	if err := c.startComponent(controller); err != nil {
		return err
	}
	return c.await(ctx, controller.name, "jobset-controller is not ready", func(ctx context.Context) error {
		return healthy(ctx, c.port("controller-health"), "/readyz")
	})
}

// permissions applies the service accounts and roles of the manifests, with those that feature gates need.
func (c *supervisor) permissions() error {
	if err := c.applyDirectory(filepath.Join(c.root, "artifacts", "base", "rbac")); err != nil {
		return err
	}
	for _, component := range c.componentsOfGates() {
		if err := c.applyPath("-f", filepath.Join(component, "rbac.yaml")); err != nil {
			return err
		}
	}
	return nil
}

// applyDirectory applies the manifests that the kustomization in a directory has.
func (c *supervisor) applyDirectory(dir string) error { return c.applyPath("-k", dir) }

// applyPath applies a file (-f) or the kustomization in a directory (-k).
func (c *supervisor) applyPath(flag, path string) error {
	err := c.logged("setup", func(log *os.File) error {
		cmd := exec.Command(filepath.Join(c.binaries, "kubectl"), "--kubeconfig", c.kubeconfig(), "apply", "--server-side", "--force-conflicts", flag, path)
		cmd.Stdout, cmd.Stderr = log, log
		return cmd.Run()
	})
	if err != nil {
		return c.failure("setup", fmt.Errorf("%s was not applied: %w", path, err))
	}
	return nil
}

// writeKubeconfig writes one with a token of a service account. Tokens end with the cluster, whose signing key they
// depend on.
func (c *supervisor) writeKubeconfig(ctx context.Context, account, name string) error {
	file := c.path(name + ".kubeconfig")
	if exists(file) {
		return nil
	}
	ca, err := os.ReadFile(c.kwokPath("pki", "ca.crt"))
	if err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](365 * 24 * 3600)}}
	request.APIVersion, request.Kind = "authentication.k8s.io/v1", "TokenRequest"
	path := "/api/v1/namespaces/" + apiservice.Namespace + "/serviceaccounts/" + account + "/token"
	if err := c.admin.post(ctx, path, request, request); err != nil {
		return fmt.Errorf("no token for %s: %w", account, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: c.admin.server, CertificateAuthorityData: ca}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: account}
	config.CurrentContext = "local"
	if err := clientcmd.WriteToFile(*config, file+".new"); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
