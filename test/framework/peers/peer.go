// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// Peer is the controller of another project.
type Peer struct {
	// Name is the name of the nested module in hack/peers and of the program, and Module the path of the module that it requires.
	Name, Module string
	// Bases are the directories in there that kustomize renders.
	Bases []string
	// Namespace and ServiceAccount are the identity of the program in the cluster.
	Namespace, ServiceAccount string
	// Args are the flags. $CONFIG is the file with the configuration, and here and there $PORT that of the webhooks and
	// $CERTIFICATES the directory with their certificate.
	Args []string
	// Secret is the Secret in which the program keeps the certificate of its webhooks, Authority the name of those who
	// issue it, and Service the DNS name for which it is. The program issues it itself, unless a valid one is there.
	Secret, Authority, Service string
	// CertificateDir is where the program looks for the certificate, unless it is told where that is.
	CertificateDir string

	cluster *localcluster.Cluster
	program string
	dir     string
	port    string
	process *framework.Process
}

// Install builds the program, applies its manifests to the cluster, and makes its credentials, in a directory that is
// removed with the cluster.
func (p *Peer) Install(ctx context.Context, c *localcluster.Cluster) (err error) {
	p.cluster, p.dir = c, filepath.Join(c.Dir, p.Name)
	build := exec.Command(filepath.Join(c.Root, "hack", "ensure-peers.sh"), p.Name)
	build.Stderr = os.Stderr
	programs, err := build.Output()
	if err != nil {
		return fmt.Errorf("building %s: %w", p.Name, err)
	}
	p.program = filepath.Join(string(bytes.TrimSpace(programs)), p.Name)
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	ports, err := localcluster.FreePorts(1)
	if err != nil {
		return err
	}
	p.port = ports[0]
	objects, err := p.manifests()
	if err != nil {
		return err
	}
	certificates, err := p.writeCertificates()
	if err != nil {
		return err
	}
	if err := callHere(objects, p.port, certificates["ca.crt"]); err != nil {
		return err
	}
	if err := p.create(objects, certificates); err != nil {
		return err
	}
	return p.writeKubeconfig(ctx)
}

// writeCertificates issues the certificate of the webhooks and writes it where the program looks for it.
func (p *Peer) writeCertificates() (map[string][]byte, error) {
	if p.CertificateDir == "" {
		p.CertificateDir = p.dir
	}
	if err := os.MkdirAll(p.CertificateDir, 0o700); err != nil {
		return nil, err
	}
	certificates, err := issue(p.Authority, p.Service)
	for name, content := range certificates {
		if err := os.WriteFile(filepath.Join(p.CertificateDir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return certificates, err
}

// create applies the objects, with the namespace and the Secret of the program.
func (p *Peer) create(objects []*unstructured.Unstructured, certificates map[string][]byte) error {
	for _, object := range []runtime.Object{
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}},
		&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: p.Secret, Namespace: p.Namespace}, Data: certificates},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return err
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return order(a) - order(b) })
	var documents bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&documents, "---\n%s", document)
	}
	return p.apply(&documents)
}

// order puts namespaces before what is in them.
func order(object *unstructured.Unstructured) int {
	if object.GetKind() == "Namespace" {
		return 0
	}
	return 1
}

// apply applies what is too large for the annotation of a client-side apply, and waits until new kinds are served.
func (p *Peer) apply(documents *bytes.Buffer) error {
	binaries, err := localcluster.TestBinaries(p.cluster.Root)
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"apply", "--server-side", "--force-conflicts", "-f", "-"},
		// Until then there are no conditions, which the next call would not accept.
		{"wait", "--for=jsonpath={.status.acceptedNames.plural}", "customresourcedefinitions", "--all", "--timeout=60s"},
		{"wait", "--for=condition=Established", "customresourcedefinitions", "--all", "--timeout=60s"},
	} {
		cmd := exec.Command(filepath.Join(binaries, "kubectl"), append([]string{"--kubeconfig", p.cluster.Kubeconfig()}, args...)...)
		cmd.Stdin = documents
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}

// Apply applies objects of the kinds that the program has, from a directory of its module that has a kustomization.
func (p *Peer) Apply(base string) error {
	module, err := p.module()
	if err != nil {
		return err
	}
	binaries, err := localcluster.TestBinaries(p.cluster.Root)
	if err != nil {
		return err
	}
	_, err = output(filepath.Join(binaries, "kubectl"), "--kubeconfig", p.cluster.Kubeconfig(), "apply", "--server-side", "-k", filepath.Join(module, base))
	return err
}

// writeKubeconfig writes credentials of the service account, so that the program may do what its manifests allow.
func (p *Peer) writeKubeconfig(ctx context.Context) error {
	config, err := p.cluster.Config()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	token, err := client.CoreV1().ServiceAccounts(p.Namespace).CreateToken(ctx, p.ServiceAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 3600)},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	file, err := clientcmd.LoadFromFile(p.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	for _, user := range file.AuthInfos {
		user.ClientCertificate, user.ClientCertificateData, user.ClientKey, user.ClientKeyData = "", nil, "", nil
		user.Token = token.Status.Token
	}
	return clientcmd.WriteToFile(*file, filepath.Join(p.dir, "kubeconfig"))
}

// Start starts the program with the configuration, and returns when its webhooks answer.
func (p *Peer) Start(ctx context.Context, configuration string) (err error) {
	file := filepath.Join(p.dir, "config.yaml")
	expand := func(text string) string {
		return strings.NewReplacer("$CONFIG", file, "$PORT", p.port, "$CERTIFICATES", p.CertificateDir).Replace(text)
	}
	if err := os.WriteFile(file, []byte(expand(configuration)), 0o600); err != nil {
		return err
	}
	args := []string{"--kubeconfig=" + filepath.Join(p.dir, "kubeconfig")}
	for _, arg := range p.Args {
		args = append(args, expand(arg))
	}
	p.process, err = framework.StartProcess(filepath.Join(p.cluster.Dir, "logs", p.Name+".log"), p.program, args...)
	if err != nil {
		return err
	}
	return p.process.Await(ctx, p.Name+" serves its webhooks", func(ctx context.Context) error {
		// Which certificate it is shows when kube-apiserver calls.
		connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", "127.0.0.1:"+p.port)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// PID is the id of the process, while it runs.
func (p *Peer) PID() int { return p.process.PID() }

// Stop ends the program, if it runs.
func (p *Peer) Stop() error {
	if p.process == nil {
		return nil
	}
	err := p.process.Terminate()
	p.process = nil
	return err
}

// Kill ends the program whatever it does, if it runs.
func (p *Peer) Kill() {
	if p.process != nil {
		p.process.Kill()
		p.process = nil
	}
}
