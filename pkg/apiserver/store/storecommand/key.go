// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
)

// keyed is what commands about one key need.
type keyed struct {
	client          *storeClient
	key, encryption string
	// resource and name name the object, and withoutUID means that its UID cannot be read. They are known once the key was read.
	resource   schema.GroupResource
	name       string
	withoutUID bool
}

func (k *keyed) addFlags(fs *pflag.FlagSet) {
	k.client = newStoreClient()
	fs.StringVar(&k.key, "key", "", "Key of the object in etcd, as errors of the server and \"kubectl jobset doctor\" name it.")
	fs.StringVar(&k.encryption, "encryption-provider-config", "", "File with the encryption configuration of the server, if it has one.")
	k.client.AddFlags(fs)
}

// read returns what the key has, and why this version cannot read it; nil if it can.
func (k *keyed) read(ctx context.Context) (source backup.Source, found *backup.Stored, unreadable, err error) {
	if k.key == "" {
		return source, nil, nil, errors.New("--key: must be set to the key of the object in etcd")
	}
	r, err := newReader(ctx, k.client.Prefix(), k.encryption)
	if err != nil {
		return source, nil, nil, err
	}
	resource, name, known := r.resource(k.key)
	if !known {
		return source, nil, nil, fmt.Errorf("--key: must be %s/GROUP/RESOURCE/NAMESPACE/NAME of a resource of this server, not %s",
			k.client.Prefix(), strconv.Quote(k.key))
	}
	if source, err = k.client.Source(ctx); err != nil {
		return source, nil, nil, err
	}
	if found, err = source.Key(ctx, k.key); err != nil {
		return source, nil, nil, err
	}
	if found == nil {
		return source, nil, nil, fmt.Errorf("--key: the store has no key %s", strconv.Quote(k.key))
	}
	entry := backup.Entry{Key: found.Key, Value: found.Value}
	_, unreadable = r.read(ctx, resource, entry)
	k.resource, k.name, k.withoutUID = resource, name, r.lacksUID(ctx, resource, name, entry)
	return source, found, unreadable, nil
}

func newExport(streams genericiooptions.IOStreams) *cobra.Command {
	var k keyed
	cmd := &cobra.Command{
		Use:   "export FILE --key=KEY",
		Short: "Save what the store has of one object",
		Long: "Save the bytes that the store has of one object to a new file, whether they can be read or not. Do so before you remove it.\n" +
			"The bytes are those in etcd, encrypted if the server encrypts; \"etcdctl put KEY < FILE\" puts them back.",
		Args: oneFile,
	}
	k.addFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		_, found, _, err := k.read(cmd.Context())
		if err != nil {
			return err
		}
		if err := writeNew(args[0], found.Value); err != nil {
			return fmt.Errorf("saving the object: %w", err)
		}
		fmt.Fprintf(streams.Out, "Saved %s to %s: %d bytes.\n", found.Key, args[0], len(found.Value))
		return nil
	}
	return cmd
}

// writeNew writes a file that does not exist.
func writeNew(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

// removal is `store remove`.
type removal struct {
	keyed
	streams  genericiooptions.IOStreams
	connect  func() (*clients, error)
	dryRun   bool
	children string
}

func newRemove(streams genericiooptions.IOStreams, connect connector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove --key=KEY",
		Short: "Remove an object that the server cannot read",
		Long: "Remove one object from the store that this version cannot read. The garbage collector then deletes its Jobs and other " +
			"children, as after\n" +
			"any deletion; finalizers of the object do not count. An object that can be read is refused: delete it with kubectl. The server\n" +
			"may run, and notices by itself.\n\n" +
			"If not even the UID of the object can be read, the garbage collector does not notice: the command then looks for the children in " +
			"the main\n" +
			"cluster by the name of their owner, and names them. --children says what else to do with them.",
		Args: noArguments,
	}
	r := &removal{streams: streams}
	r.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&r.dryRun, "dry-run", false, "Only say what would be removed.")
	cmd.Flags().StringVar(&r.children, "children", childrenName, "What to do with the children: \"release\" lets them run to their end; "+
		"\"name\" and \"delete\" are for an object whose UID cannot be read, and only name them, or delete them.")
	flags := addClusterFlags(cmd)
	r.connect = func() (*clients, error) { return connect(flags) }
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context()) }
	return cmd
}

func (r *removal) run(ctx context.Context) error {
	if r.children != childrenName && r.children != childrenRelease && r.children != childrenDelete {
		return fmt.Errorf("--children: must be name, release or delete, not %q", r.children)
	}
	source, found, unreadable, err := r.read(ctx)
	switch {
	case err != nil:
		return err
	case errors.Is(unreadable, errEncrypted):
		return fmt.Errorf("--encryption-provider-config: must be set, because %s is encrypted: give the file of the server", found.Key)
	case unreadable == nil:
		return fmt.Errorf("--key: %s can be read, so that it must be deleted through the API: use kubectl delete", found.Key)
	}
	if err := r.careForChildren(ctx, found); err != nil {
		return fmt.Errorf("%w\nThe object was not removed, because its children are found by its key: correct this and run the command again",
			err)
	}
	if r.dryRun {
		fmt.Fprintf(r.streams.Out, "Would remove %s, which cannot be read: %s\n", found.Key, quoted(unreadable))
		return nil
	}
	removed, err := source.Remove(ctx, found)
	if err == nil && !removed {
		err = fmt.Errorf("--key: %s was written in between: look again", found.Key)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(r.streams.Out, "Removed %s, which could not be read: %s\n", found.Key, quoted(unreadable))
	return nil
}

// careForChildren leaves the children of an object whose UID can be read to the garbage collector, unless they are to be
// released. That children cannot be named keeps no object from being removed.
func (r *removal) careForChildren(ctx context.Context, found *backup.Stored) error {
	if !r.withoutUID && r.children != childrenRelease {
		return nil
	}
	namespace, name, _ := strings.Cut(r.name, "/")
	cluster, err := r.connect()
	if err == nil {
		owner := unknownOwner{r.resource, namespace, name}
		err = (&childCare{clients: cluster, streams: r.streams, owner: owner, mode: r.children, dryRun: r.dryRun}).run(ctx)
	}
	if err != nil && r.children == childrenName {
		fmt.Fprintf(r.streams.ErrOut, "The UID of %s cannot be read, so the garbage collector does not notice that it is gone, and its children "+
			"are not known: %v\n", found.Key, err)
		return nil
	}
	return err
}

// quoted returns an error as a line. What is stored may be anything.
func quoted(err error) string {
	const maxBytes = 300
	text := err.Error()
	line := strconv.Quote(text[:min(len(text), maxBytes)])
	return line[1 : len(line)-1]
}

// Unreadable are the objects in the store that this version cannot read.
type Unreadable struct {
	Count int `json:"count"`
	// Objects are the first 20 of them.
	Objects []UnreadableObject `json:"objects,omitempty"`
}

// UnreadableObject is an object that this version cannot read.
type UnreadableObject struct {
	Key   string `json:"key"`
	Cause string `json:"cause"`
}

// findUnreadable reads all objects.
func findUnreadable(ctx context.Context, client *storeClient, encryption string) (*Unreadable, error) {
	r, err := newReader(ctx, client.Prefix(), encryption)
	if err != nil {
		return nil, err
	}
	source, err := client.Source(ctx)
	if err != nil {
		return nil, err
	}
	found := &Unreadable{}
	for _, resource := range r.resources {
		prefix := client.Prefix() + "/" + resource.Group + "/" + resource.Resource + "/"
		err := source.EachKey(ctx, prefix, func(stored backup.Stored) error {
			_, unreadable := r.read(ctx, resource, backup.Entry{Key: stored.Key, Value: stored.Value})
			if unreadable == nil || errors.Is(unreadable, errEncrypted) {
				return nil
			}
			if found.Count++; found.Count <= maxProblems {
				found.Objects = append(found.Objects, UnreadableObject{Key: stored.Key, Cause: quoted(unreadable)})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// write is the section of "store status" for humans.
func (u *Unreadable) write(out io.Writer) error {
	for _, o := range u.Objects {
		fmt.Fprintf(out, "\nCannot be read: %s: %s", strconv.Quote(o.Key), o.Cause)
	}
	_, err := fmt.Fprintf(out, "\nObjects that cannot be read: %d. \"store export\" saves and \"store remove\" removes one.\n", u.Count)
	return err
}
