// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/outbox"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup/bucket"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/importer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func newVerify(streams genericiooptions.IOStreams) *cobra.Command {
	client, encryption, s3 := newStoreClient(), "", bucket.Options{}
	cmd := &cobra.Command{
		Use:   "verify FILE | DIR/ | - | s3://BUCKET/PREFIX/[NAME]",
		Short: "Check a backup, and whether this version can serve it",
		Long: "Check a backup of \"store backup\", \"etcdctl snapshot save\" or \"etcdutl snapshot save\": its hash, its structure, and " +
			"whether\n" +
			"this version of the server can read every object in it. The exit code is 1 if it cannot be served. The backup is a file, the\n" +
			"standard input, an object in a bucket, or, if the argument ends with a slash, the newest one there. What is not a file is first\n" +
			"copied into the directory for temporary files (TMPDIR).",
		Args: oneFile,
	}
	client.AddPrefixFlag(cmd.Flags())
	s3.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&encryption, "encryption-provider-config", "", "File with the encryption configuration of the server. Without it, "+
		"encrypted objects are counted but not read.")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		reader, err := newReader(cmd.Context(), client.Prefix(), encryption)
		if err != nil {
			return err
		}
		from, err := fetch(cmd.Context(), args[0], s3, streams.In, "")
		if err != nil {
			return explainSpool(err)
		}
		defer func() { err = errors.Join(err, from.remove()) }()
		file, err := from.open()
		if err != nil {
			return err
		}
		v := &verification{reader: reader, counts: map[string]*count{}}
		err = errors.Join(v.look(cmd.Context(), file), file.Close())
		if err != nil {
			return err
		}
		if err := v.write(streams.Out, file); err != nil {
			return err
		}
		if !v.servable() {
			return ExitCode(1)
		}
		return nil
	}
	return cmd
}

// count is what is known of the objects of a resource.
type count struct{ objects, unreadable, encrypted, old int }

// verification is what a backup has.
type verification struct {
	reader *reader
	found  *witness.Found
	counts map[string]*count
	// problems are lines about objects that cannot be read, at most maxProblems.
	problems   []string
	unreadable int
}

func (v *verification) look(ctx context.Context, file *backup.File) (err error) {
	if v.found, err = file.Witness(v.reader.prefix); err != nil {
		return err
	}
	for _, resource := range v.reader.resources {
		v.counts[resource.String()] = &count{}
	}
	return file.ForEach(v.reader.prefix+"/", func(entry backup.Entry) error {
		if v.isObject(entry.Key) {
			v.add(ctx, entry)
		}
		return ctx.Err()
	})
}

// isObject leaves out what the server stores beside its objects.
func (v *verification) isObject(key string) bool {
	return key != backup.WitnessKey(v.reader.prefix) && !strings.HasPrefix(key, v.reader.prefix+"/"+importer.Marks+"/") &&
		!strings.HasPrefix(key, v.reader.prefix+"/"+outbox.Name+"/")
}

func (v *verification) add(ctx context.Context, entry backup.Entry) {
	resource, name, known := v.reader.resource(entry.Key)
	if !known {
		v.problem(resource, name, errors.New("this version does not know the resource"))
		return
	}
	c := v.counts[resource.String()]
	c.objects++
	current, err := v.reader.read(ctx, resource, entry)
	switch {
	case errors.Is(err, errEncrypted):
		c.encrypted++
	case err != nil:
		c.unreadable++
		v.problem(resource, name, err)
	case !current:
		c.old++
	}
}

// problem keeps a line. What is stored may be anything, so its name is quoted if need be and the error is cut.
func (v *verification) problem(resource schema.GroupResource, name string, err error) {
	if v.unreadable++; v.unreadable > maxProblems {
		return
	}
	const maxBytes = 300
	line := fmt.Sprintf("%s %s: %v", resource, name, err)
	if resource.Empty() {
		line = fmt.Sprintf("%s: %v", name, err)
	}
	line = strings.ToValidUTF8(line[:min(len(line), maxBytes)], "")
	quoted := strconv.Quote(line)
	v.problems = append(v.problems, quoted[1:len(quoted)-1])
}

func (v *verification) servable() bool {
	return v.unreadable == 0 && (v.found == nil || v.found.Format <= witness.Format)
}

func (v *verification) write(out io.Writer, file *backup.File) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is a sound snapshot: %d bytes, SHA-256 %s, revision %d.\n", file.Path, file.Bytes, file.SHA256, file.Revision)
	if v.found == nil {
		fmt.Fprintf(&b, "It has no key of the witness below %s: a server treats it as an empty store, unless it was made before the first "+
			"version with one.\n", v.reader.prefix)
	} else {
		fmt.Fprintf(&b, "Store %s of the cluster %s, written by version %s, key at revision %d.\n", v.found.UUID, v.found.ClusterUID,
			v.found.Version, v.found.ModRevision)
	}
	for _, resource := range slices.Sorted(maps.Keys(v.counts)) {
		fmt.Fprintf(&b, "%s: %s\n", resource, v.counts[resource])
	}
	for _, line := range v.problems {
		fmt.Fprintf(&b, "cannot be read: %s\n", line)
	}
	if more := v.unreadable - len(v.problems); more > 0 {
		fmt.Fprintf(&b, "cannot be read: %d more\n", more)
	}
	this := version.Get().GitVersion
	switch {
	case v.found != nil && v.found.Format > witness.Format:
		fmt.Fprintf(&b, "This version (%s) must not serve it: %v.\n", this, newerFormat(v.found))
	case v.unreadable > 0:
		fmt.Fprintf(&b, "This version (%s) cannot read %s.\n", this, plural(v.unreadable, "object"))
	case v.encrypted() > 0:
		fmt.Fprintf(&b, "This version (%s) can read all other objects. Set --encryption-provider-config to check those that are encrypted.\n",
			this)
	default:
		fmt.Fprintf(&b, "This version (%s) can read all objects.\n", this)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (v *verification) encrypted() int {
	total := 0
	for _, c := range v.counts {
		total += c.encrypted
	}
	return total
}

// String is the part of a line.
func (c *count) String() string {
	line := plural(c.objects, "object")
	for _, part := range []struct {
		n    int
		what string
	}{
		{c.unreadable, "cannot be read"},
		{c.encrypted, "encrypted"},
		{c.old, "stored in an older form, which \"store migrate\" rewrites"},
	} {
		if part.n > 0 {
			line += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return line
}
