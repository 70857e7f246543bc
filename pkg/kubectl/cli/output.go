// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// ReportVersion is the group and version of the reports that commands make. No server has it.
var ReportVersion = schema.GroupVersion{Group: "kubectl.jobset-apiserver.io", Version: "v1alpha1"}

// Output is the flag -o of a command, with the formats of kubectl.
type Output struct {
	flags *genericclioptions.PrintFlags
	// own are formats that the command prints itself.
	own []string
}

// AddFlags adds -o and the flags that belong to it. The formats of kubectl are those for data; the command prints its own ones.
func (o *Output) AddFlags(cmd *cobra.Command, own ...string) {
	o.flags, o.own = genericclioptions.NewPrintFlags(""), own
	o.flags.NamePrintFlags = nil // reports are about objects and have no names
	o.flags.AddFlags(cmd)
	_ = cmd.Flags().MarkHidden("show-managed-fields")
	formats := append(o.flags.AllowedFormats(), own...)
	cmd.Flags().Lookup("output").Usage = "Output format. One of: (" + strings.Join(formats, ", ") + "). Default is human-readable text."
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// Is returns whether the format was chosen.
func (o *Output) Is(format string) bool { return *o.flags.OutputFormat == format }

// ForHumans means that the command prints text.
func (o *Output) ForHumans() bool {
	return o.Is("") && *o.flags.TemplatePrinterFlags.TemplateArgument == ""
}

// Validate refuses formats that the command does not have.
func (o *Output) Validate() error {
	if o.ForHumans() || slices.ContainsFunc(o.own, o.Is) {
		return nil
	}
	_, err := o.flags.ToPrinter()
	var unknown genericclioptions.NoCompatiblePrinterError
	if errors.As(err, &unknown) {
		unknown.AllowedFormats = append(unknown.AllowedFormats, o.own...)
		return unknown
	}
	return err
}

// Print writes an object in the format, which is not one of the command's own.
func (o *Output) Print(w io.Writer, object runtime.Object) error {
	printer, err := o.flags.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, w)
}

// PrintReport writes a report as an object of the kind. The fields are an interface for scripts: their names do not change.
func (o *Output) PrintReport(w io.Writer, kind string, fields any) error {
	return o.Print(w, &report{metav1.TypeMeta{APIVersion: ReportVersion.String(), Kind: kind}, fields})
}

// report is an object with the fields of a struct.
type report struct {
	metav1.TypeMeta
	fields any
}

// DeepCopyObject implements runtime.Object. A report that is printed does not change.
func (r *report) DeepCopyObject() runtime.Object { return &report{r.TypeMeta, r.fields} }

// MarshalJSON implements json.Marshaler.
func (r *report) MarshalJSON() ([]byte, error) {
	begin, err := json.Marshal(r.TypeMeta)
	if err != nil {
		return nil, err
	}
	fields, err := json.Marshal(r.fields)
	if err != nil {
		return nil, err
	}
	return slices.Concat(begin[:len(begin)-1], []byte(","), fields[1:]), nil
}
