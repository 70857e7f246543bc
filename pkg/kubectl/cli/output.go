// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// Output is the flag -o of a command that prints data. Data are values with JSON tags; their fields are an interface
// for scripts, so that names are not changed lightly.
type Output struct {
	// Format is empty for humans, or one of the formats of the command.
	Format  string
	formats []string
}

// AddFlags adds -o for json, yaml and the further formats.
func (o *Output) AddFlags(cmd *cobra.Command, further ...string) {
	o.formats = append([]string{"json", "yaml"}, further...)
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", "Format: "+strings.Join(o.formats, ", ")+". Default is text for humans.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(completions(o.formats), cobra.ShellCompDirectiveNoFileComp))
}

func completions(values []string) []cobra.Completion {
	out := make([]cobra.Completion, 0, len(values))
	return append(out, values...)
}

// Validate refuses formats that the command does not have.
func (o *Output) Validate() error {
	if o.Format != "" && !slices.Contains(o.formats, o.Format) {
		return fmt.Errorf("--output: must be one of %s, not %q", strings.Join(o.formats, ", "), o.Format)
	}
	return nil
}

// ForHumans means that the command prints text.
func (o *Output) ForHumans() bool { return o.Format == "" }

// Print writes data as JSON or YAML.
func (o *Output) Print(w io.Writer, data any) error {
	content, err := json.MarshalIndent(data, "", "  ")
	if err == nil && o.Format == "yaml" {
		content, err = yaml.JSONToYAML(content)
	}
	if err != nil {
		return fmt.Errorf("formatting as %s: %w", o.Format, err)
	}
	_, err = fmt.Fprintln(w, strings.TrimRight(string(content), "\n"))
	return err
}

// Terminal is how text can be shown to the user.
type Terminal struct {
	// Width is the number of columns. 0 when the output is no terminal: then nothing is cut.
	Width int
	// Height is the number of lines. 0 when the output is no terminal.
	Height int
	// Colors means that colors are shown.
	Colors bool
}

// TerminalOf returns what is behind a writer. Colors are off when NO_COLOR is set or TERM is dumb.
func TerminalOf(w io.Writer) Terminal {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Terminal{}
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	return Terminal{Width: width, Height: height, Colors: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Color is an ANSI color or style.
type Color string

// The colors that commands use, each with one meaning.
const (
	Good  Color = "32" // green: ready, completed
	Bad   Color = "31" // red: failed
	Busy  Color = "33" // yellow: pending, restarting
	Quiet Color = "90" // grey: what is of less interest
	Bold  Color = "1"
)

// Paint returns the text in the color, if the terminal shows colors.
func (t Terminal) Paint(color Color, text string) string {
	if !t.Colors || text == "" || color == "" {
		return text
	}
	return "\x1b[" + string(color) + "m" + text + "\x1b[0m"
}
