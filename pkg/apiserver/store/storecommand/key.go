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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
)

// keyed is what commands about one key need.
type keyed struct {
	client          *options.StoreClient
	key, encryption string
}

func (k *keyed) addFlags(fs *pflag.FlagSet) {
	k.client = options.NewStoreClient()
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
	resource, _, known := r.resource(k.key)
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
	_, unreadable = r.read(ctx, resource, backup.Entry{Key: found.Key, Value: found.Value})
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

func newRemove(streams genericiooptions.IOStreams) *cobra.Command {
	var k keyed
	dryRun := false
	cmd := &cobra.Command{
		Use:   "remove --key=KEY",
		Short: "Remove an object that the server cannot read",
		Long: "Remove one object from the store that this version cannot read. The garbage collector then deletes its Jobs and other " +
			"children, as after\n" +
			"any deletion; finalizers of the object do not count. An object that can be read is refused: delete it with kubectl. The server\n" +
			"may run, and notices by itself.",
		Args: noArguments,
	}
	k.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "Only say what would be removed.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		source, found, unreadable, err := k.read(cmd.Context())
		switch {
		case err != nil:
			return err
		case errors.Is(unreadable, errEncrypted):
			return fmt.Errorf("--encryption-provider-config: must be set, because %s is encrypted: give the file of the server", found.Key)
		case unreadable == nil:
			return fmt.Errorf("--key: %s can be read, so that it must be deleted through the API: use kubectl delete", found.Key)
		}
		if dryRun {
			fmt.Fprintf(streams.Out, "Would remove %s, which cannot be read: %s\n", found.Key, quoted(unreadable))
			return nil
		}
		removed, err := source.Remove(cmd.Context(), found)
		if err == nil && !removed {
			err = fmt.Errorf("--key: %s was written in between: look again", found.Key)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(streams.Out, "Removed %s, which could not be read: %s\n", found.Key, quoted(unreadable))
		return nil
	}
	return cmd
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
func findUnreadable(ctx context.Context, client *options.StoreClient, encryption string) (*Unreadable, error) {
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
