// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli holds what all commands of the plugin share: clients made from kubectl's flags, the terminal, formats of
// data, and errors in words that a user can act on.
package cli

import (
	"fmt"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

// Factory makes clients from the flags that every kubectl command has.
type Factory struct {
	// Flags are kubectl's: --kubeconfig, --context, --namespace, --as and so on.
	Flags *genericclioptions.ConfigFlags
	// IOStreams are where commands read and write.
	genericiooptions.IOStreams
	// NoWarnings leaves out the warnings of servers. It must be set before the first call of Clients.
	NoWarnings bool

	// ascii is the flag --ascii.
	ascii *pflag.Flag

	once    sync.Once
	clients *Clients
	err     error
}

// Clients reach one cluster, with one default namespace.
type Clients struct {
	// Config is what the clients were made from.
	Config *rest.Config
	// Namespace is the namespace of --namespace, or of the context.
	Namespace string
	// Kube is a client of the built-in kinds. It speaks protobuf, which decodes many pods several times faster.
	Kube kubernetes.Interface
	// JobSets is a client of JobSets. It speaks JSON, because custom resources of upstream's server do.
	JobSets versioned.Interface
	// Dynamic is a client of all other kinds, like APIServices and the Workloads of queues.
	Dynamic dynamic.Interface
	// Metadata is a client of the metadata of all kinds, for names alone.
	Metadata metadata.Interface
	// Discovery finds what the cluster serves.
	Discovery discovery.DiscoveryInterface
}

// NewFactory returns a factory whose flags are not parsed yet.
func NewFactory(streams genericiooptions.IOStreams) *Factory {
	return &Factory{Flags: genericclioptions.NewConfigFlags(true), IOStreams: streams}
}

// AddFlags adds the flags that every command has.
func (f *Factory) AddFlags(flags *pflag.FlagSet) {
	f.Flags.AddFlags(flags)
	flags.Bool("ascii", false, "Draw with ASCII characters only. By default, this depends on the locale and on TERM.")
	f.ascii = flags.Lookup("ascii")
}

// Terminal returns how the output is shown.
func (f *Factory) Terminal() Terminal {
	t := TerminalOf(f.Out)
	if f.ascii != nil && f.ascii.Changed {
		t.ASCII = f.ascii.Value.String() == "true"
	}
	return t
}

// Clients returns the clients. They are made at the first call, after the flags were parsed.
func (f *Factory) Clients() (*Clients, error) {
	f.once.Do(func() { f.clients, f.err = f.newClients() })
	return f.clients, f.err
}

func (f *Factory) newClients() (*Clients, error) {
	config, err := f.Flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := f.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the namespace of the context: %w", err)
	}
	// One command makes a handful of calls; the limit is for controllers, and would only make a user wait.
	config.QPS, config.Burst = -1, -1
	config.UserAgent = "kubectl-jobset/" + version.Get().GitVersion
	config.WarningHandler = rest.NewWarningWriter(f.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	if f.NoWarnings {
		config.WarningHandler = rest.NoWarnings{}
	}
	c := &Clients{Config: config, Namespace: namespace}

	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if c.Kube, err = kubernetes.NewForConfig(protobuf); err != nil {
		return nil, err
	}
	json := rest.CopyConfig(config)
	json.ContentType, json.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if c.JobSets, err = versioned.NewForConfig(json); err != nil {
		return nil, err
	}
	if c.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.Metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	c.Discovery, err = discovery.NewDiscoveryClientForConfig(config)
	return c, err
}
