// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// ofCluster is the annotation of the flags that say how to reach the main cluster.
const ofCluster = "jobset-apiserver.io/main-cluster"

// clients reach the main cluster as the administrator.
type clients struct {
	kube     kubernetes.Interface
	metadata metadata.Interface
	dynamic  dynamic.Interface
}

// connector makes the clients from the flags of a command. Tests have others.
type connector func(*genericclioptions.ConfigFlags) (*clients, error)

// addClusterFlags adds the flags of kubectl to a command. All that the commands look at is in a known namespace, or in all of them.
func addClusterFlags(cmd *cobra.Command) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(false)
	flags.Namespace, flags.CacheDir = nil, nil
	var set pflag.FlagSet
	flags.AddFlags(&set)
	set.VisitAll(func(flag *pflag.Flag) { flag.Annotations = map[string][]string{ofCluster: nil} })
	cmd.Flags().AddFlagSet(&set)
	return flags
}

// connecting returns the RunE of a command that works on a cluster once its flags are valid.
func connecting(connect connector, flags *genericclioptions.ConfigFlags, validate func() error,
	run func(ctx context.Context, c *clients) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if err := validate(); err != nil {
			return err
		}
		c, err := connect(flags)
		if err != nil {
			return err
		}
		return run(cmd.Context(), c)
	}
}

// connect makes clients of the cluster that the flags name.
func connect(flags *genericclioptions.ConfigFlags) (*clients, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, invalidConfig(err)
	}
	// The main cluster limits a command by its own priorities.
	config.QPS = -1
	config.UserAgent = "jobset-apiserver-store/" + version.Get().GitVersion
	config.WarningHandler = rest.NoWarnings{}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, invalidConfig(err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, invalidConfig(err)
	}
	dynamics, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, invalidConfig(err)
	}
	return &clients{kube, meta, dynamics}, nil
}

func invalidConfig(err error) error {
	return fmt.Errorf("%w: give a valid kubeconfig for the main cluster (--kubeconfig, --context)", err)
}

// getRecord reads the ConfigMap of the witness. The record is nil if there is none.
func (c *clients) getRecord(ctx context.Context) (*corev1.ConfigMap, *witness.Record, error) {
	cm, err := c.kube.CoreV1().ConfigMaps(witness.Namespace).Get(ctx, witness.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, nil
	case err != nil:
		return nil, nil, explain(err)
	}
	record, err := witness.Read(cm)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: restore the entry, or remove all entries of the ConfigMap if the server still serves the right store",
			err)
	}
	return cm, record, nil
}

// explain adds to an error of the main cluster what to do.
func explain(err error) error {
	var unreachable *url.Error
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: use the kubeconfig of a user with this permission (--kubeconfig, --context, --as)", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the main cluster does not accept the credentials: %w: use another kubeconfig (--kubeconfig, --context)", err)
	case errors.As(err, &unreachable):
		return fmt.Errorf("the main cluster does not answer: %w: check its address in the kubeconfig (--kubeconfig, --context)", err)
	}
	return err
}

// dryRun is the flag --dry-run with the values of kubectl.
type dryRun struct{ value string }

func (d *dryRun) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.value, "dry-run", "none", `Must be "none", "server", or "client". If client strategy, only print what would `+
		`be changed. If server strategy, submit the requests without persisting anything.`)
}

func (d *dryRun) validate() error {
	switch d.value {
	case "none", "server", "client":
		return nil
	}
	return fmt.Errorf("--dry-run: must be none, server or client, not %q", d.value)
}

// client means that nothing is sent.
func (d *dryRun) client() bool { return d.value == "client" }

// options are for requests.
func (d *dryRun) options() []string {
	if d.value == "server" {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// suffix is what follows each line of the output, as in kubectl.
func (d *dryRun) suffix() string {
	switch d.value {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}
