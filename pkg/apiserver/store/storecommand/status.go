// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func newStatus(streams genericiooptions.IOStreams, connect connector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether a server refuses the store, and why",
		Long: "Show what the main cluster knows of the store (ConfigMap " + witness.Namespace + "/" + witness.Name +
			"): whether a server refuses\n" +
			"it, why, and what an administrator has accepted.\n\n" +
			"The exit code is 0 if no server refuses the store, 2 if one does, 3 if there is no witness, and 1 after an error.",
		Example: "  # Is the store refused, and why?\n  jobset-apiserver store status\n\n" +
			"  # The UUID to accept\n  jobset-apiserver store status -o jsonpath='{.refusal.newUUID}'",
		Args: noArguments,
	}
	var output output
	output.addFlags(cmd)
	flags := addClusterFlags(cmd)
	client, encryption := newStoreClient(), ""
	client.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&encryption, "encryption-provider-config", "",
		"File with the encryption configuration of the server. Without it, encrypted objects are not read.")
	cmd.RunE = connecting(connect, flags, output.validate, func(ctx context.Context, c *clients) error {
		_, record, err := c.getRecord(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		status := statusOf(record, now)
		if client.Set() {
			if status.Unreadable, err = findUnreadable(ctx, client, encryption); err != nil {
				return err
			}
		}
		if output.forHumans() {
			err = status.write(streams.Out, now)
		} else {
			err = output.print(streams.Out, status)
		}
		if code := exitCodes[status.State]; err == nil && code != 0 {
			return code
		}
		return err
	})
	return cmd
}

// output is the flag -o with the formats of kubectl for data.
type output struct {
	flags *genericclioptions.PrintFlags
}

func (o *output) addFlags(cmd *cobra.Command) {
	o.flags = genericclioptions.NewPrintFlags("")
	o.flags.NamePrintFlags = nil // a report has no name
	o.flags.AddFlags(cmd)
	_ = cmd.Flags().MarkHidden("show-managed-fields")
	cmd.Flags().Lookup("output").Usage = "Output format. One of: (" + strings.Join(o.flags.AllowedFormats(), ", ") +
		"). Default is human-readable text."
}

func (o *output) forHumans() bool {
	return *o.flags.OutputFormat == "" && *o.flags.TemplatePrinterFlags.TemplateArgument == ""
}

func (o *output) validate() error {
	if o.forHumans() {
		return nil
	}
	_, err := o.flags.ToPrinter()
	var unknown genericclioptions.NoCompatiblePrinterError
	if errors.As(err, &unknown) {
		return fmt.Errorf("--output: must be one of %s, not %q", strings.Join(unknown.AllowedFormats, ", "), *o.flags.OutputFormat)
	}
	return err
}

func (o *output) print(out io.Writer, object runtime.Object) error {
	printer, err := o.flags.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, out)
}
