// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version is `kubectl jobset version`: the versions of the plugin, the API server, the controller and the cluster, and the feature
// gates. The server's come from its document of feature gates, which all users may read; the controller's from the holder of
// its lease.
package version

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/component-base/version"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
)

const long = `Show the versions of the plugin, of jobset-apiserver, of jobset-controller and of the cluster, and the feature gates of
the server.

A warning follows if the plugin or the controller differs from the server by more than one minor version. The version of
the controller comes from its lease, which not all users may read; what cannot be read is shown as unknown, with the
reason.`

const example = `  # All versions
  kubectl jobset version

  # The version of the plugin, without a cluster
  kubectl jobset version --client

  # Whether a feature gate is on, for a script
  kubectl jobset version -o jsonpath='{.featureGates.ElasticJobSet}'`

// Versions are what -o json prints. Those that are not known are absent.
type Versions struct {
	Client     string          `json:"client"`
	Server     string          `json:"server,omitempty"`
	Controller string          `json:"controller,omitempty"`
	Kubernetes string          `json:"kubernetes,omitempty"`
	Gates      map[string]bool `json:"featureGates,omitempty"`
	// Warnings are about versions that are too far apart.
	Warnings []string `json:"warnings,omitempty"`
	// Notes say why a version is not known.
	Notes []string `json:"notes,omitempty"`
}

// options are the flags of the command.
type options struct {
	clientOnly bool
	namespace  string
	output     cli.Output
}

// NewCommand returns `kubectl jobset version`.
func NewCommand(f *cli.Factory) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Show the versions of plugin, server and controller, and the feature gates",
		Long:              long,
		Example:           example,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			return o.run(cmd.Context(), f)
		},
	}
	cmd.Flags().BoolVar(&o.clientOnly, "client", false, "Show only the version of the plugin, and ask no cluster.")
	cmd.Flags().StringVar(&o.namespace, "controller-namespace", helper.ControllerNamespace, "Namespace in which the controller has its lease.")
	o.output.AddFlags(cmd)
	return cmd
}

func (o *options) validate(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s: version takes no arguments", args[0])
	}
	if problems := validation.IsDNS1123Label(o.namespace); len(problems) > 0 {
		return fmt.Errorf("--controller-namespace: must be the name of a namespace, not %q", o.namespace)
	}
	return o.output.Validate()
}

// run prints what is known, also if the cluster does not answer.
func (o *options) run(ctx context.Context, f *cli.Factory) error {
	v := &Versions{Client: version.Get().GitVersion}
	var failure error
	if !o.clientOnly {
		var clients *cli.Clients
		if clients, failure = f.Clients(); failure == nil {
			failure = v.read(ctx, clients, o.namespace)
		}
		v.Warnings = Skew(v)
	}
	var err error
	if o.output.ForHumans() {
		err = f.Terminal().Lines(f.Out, v.lines(f.Terminal(), o.clientOnly)...)
	} else {
		err = o.output.PrintReport(f.Out, "JobSetVersions", v)
	}
	return errors.Join(err, failure)
}

// read asks the cluster. An error means that it does not answer at all.
func (v *Versions) read(ctx context.Context, c *cli.Clients, namespace string) error {
	if err := v.readKubernetes(c.Discovery); err != nil {
		return err
	}
	v.readServer(ctx, c)
	v.readController(ctx, c, namespace)
	return nil
}

func (v *Versions) readKubernetes(client discovery.DiscoveryInterface) error {
	info, err := client.ServerVersion()
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		v.Notes = append(v.Notes, "the version of Kubernetes is not known: "+err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the version of the cluster: %w", err)
	}
	v.Kubernetes = info.GitVersion
	return nil
}

// document is what the server says about itself.
type document struct {
	Version      string          `json:"version"`
	FeatureGates map[string]bool `json:"featureGates"`
}

func (v *Versions) readServer(ctx context.Context, c *cli.Clients) {
	const unknown = "the version of the server is not known: "
	path := path.Join("/apis", cli.JobSet.GroupVersion.String(), "featuregates")
	answer := c.Discovery.RESTClient().Get().AbsPath(path).Do(ctx)
	content, err := answer.Raw()
	if failed := answer.Error(); failed != nil {
		err = failed // has the message of the server
	}
	var found document
	switch {
	case apierrors.IsNotFound(err):
		v.Notes = append(v.Notes, fmt.Sprintf("%sthere is no %s; it is another server of JobSets, or none is installed", unknown, path))
		return
	case err != nil:
		v.Notes = append(v.Notes, unknown+cli.Explain(outage.Explain(ctx, c, err, cli.JobSet), cli.JobSet))
		return
	}
	if err := json.Unmarshal(content, &found); err != nil {
		v.Notes = append(v.Notes, unknown+err.Error())
		return
	}
	v.Gates, v.Server = found.FeatureGates, found.Version
	if v.Server == "" {
		v.Notes = append(v.Notes, unknown+"it is older than this plugin, and does not report it")
	}
}

func (v *Versions) readController(ctx context.Context, c *cli.Clients, namespace string) {
	const unknown = "the version of the controller is not known: "
	lease, err := c.Kube.CoordinationV1().Leases(namespace).Get(ctx, helper.ControllerLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		v.Notes = append(v.Notes, fmt.Sprintf("%sthere is no lease %s in namespace %s; --controller-namespace names another one", unknown,
			helper.ControllerLease, namespace))
		return
	case err != nil:
		v.Notes = append(v.Notes, unknown+err.Error())
		return
	}
	identity := ptr.Deref(lease.Spec.HolderIdentity, "")
	if identity == "" {
		v.Notes = append(v.Notes, unknown+"no controller holds the lease, so that none works")
		return
	}
	if v.Controller = helper.ControllerVersion(identity); v.Controller == "" {
		v.Notes = append(v.Notes, fmt.Sprintf("%s%s, which holds the lease, does not report it", unknown, cli.Clean(identity)))
	}
}

// lines are the versions for humans.
func (v *Versions) lines(t cli.Terminal, clientOnly bool) []string {
	rows := [][]string{{"Client", v.Client}}
	if !clientOnly {
		for _, row := range [][]string{{"Server", v.Server}, {"Controller", v.Controller}, {"Kubernetes", v.Kubernetes}} {
			if row[1] == "" {
				row[1] = t.Paint(cli.Quiet, "unknown")
			}
			rows = append(rows, row)
		}
	}
	for i := range rows {
		rows[i] = []string{t.Paint(cli.Bold, rows[i][0]), cli.Clean(rows[i][1])}
	}
	lines := cli.Align(rows)
	for _, on := range []bool{true, false} {
		if names := v.gates(on); len(names) > 0 {
			title := map[bool]string{true: "Gates on", false: "Gates off"}[on]
			lines = append(lines, t.Wrap(strings.Join(names, ", "), cli.Pad(t.Paint(cli.Bold, title), 12), strings.Repeat(" ", 12))...)
		}
	}
	for _, text := range v.Warnings {
		for _, line := range t.Wrap(text, "warning: ", "  ") {
			lines = append(lines, t.Paint(cli.Busy, line))
		}
	}
	for _, text := range v.Notes {
		lines = append(lines, t.Wrap(cli.Clean(text), "note: ", "  ")...)
	}
	return lines
}

// gates are the names of those that are on, or off.
func (v *Versions) gates(on bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v.Gates)), func(name string) bool { return v.Gates[name] != on })
}

// supportedSkew is how many minor versions programs may be apart.
const supportedSkew = 1

// Skew returns warnings about programs that are too far from the server. Versions that are not known, or that are no versions, are left
// out.
func Skew(v *Versions) (warnings []string) {
	server, err := utilversion.ParseGeneric(v.Server)
	if err != nil {
		return nil
	}
	for _, other := range []struct{ name, version string }{{"plugin", v.Client}, {"controller", v.Controller}} {
		of, err := utilversion.ParseGeneric(other.version)
		if err != nil {
			continue
		}
		apart := int64(of.Minor()) - int64(server.Minor())
		if of.Major() != server.Major() || apart > supportedSkew || apart < -supportedSkew {
			warnings = append(warnings, fmt.Sprintf("the %s (%s) and the server (%s) are more than %d minor version apart, which is not supported",
				other.name, other.version, v.Server, supportedSkew))
		}
	}
	return warnings
}
