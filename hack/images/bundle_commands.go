// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/chart"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/krew"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/oci"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/signature"
)

// keyFlags name the key that signs.
type keyFlags struct{ key, password string }

func (k *keyFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&k.key, "signing-key", "", "file with a private key of minisign; without it nothing is signed")
	fs.StringVar(&k.password, "signing-password-file", "", "file with the password of the key, if it has one")
}

// read returns the key, or nil if none is named.
func (k *keyFlags) read() (*signature.Key, error) {
	if k.key == "" {
		if k.password != "" {
			return nil, errors.New("SIGNING_PASSWORD_FILE is set, and SIGNING_KEY must be, too")
		}
		return nil, nil
	}
	return signature.ReadKey(k.key, k.password)
}

func runChart(_ context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("chart", flag.ContinueOnError)
	source := fs.String("source", "", "root directory of the repository")
	output := fs.String("output", "", "directory to write to")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *source == "" || *output == "" {
		return errors.New("--source and --output are required")
	}
	c, err := chart.Load(filepath.Join(*source, chartSource))
	if err != nil {
		return err
	}
	file, err := c.Write(*output)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, file)
	return nil
}

func runRender(_ context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("render", flag.ContinueOnError)
	source := fs.String("source", "", "root directory of the repository")
	images := fs.String("images", "", "directory with the images that were built")
	registry := fs.String("registry", "", "registry and path that the images were pushed to")
	overlay := fs.String("overlay", defaultOverlay, "directory in artifacts/overlays")
	output := fs.String("output", "", "file to write to")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *source == "" || *images == "" || *output == "" {
		return errors.New("--source, --images and --output are required")
	}
	if *registry == "" {
		return errors.New("a registry is required: make install-from-source REGISTRY=registry.example.com/team")
	}
	d, err := readDigests(filepath.Join(*images, digestsFile))
	if err != nil {
		return err
	}
	text, err := renderOverlay(*source, *overlay, *registry, d)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, *output)
	return os.WriteFile(*output, text, 0o644)
}

func runRelease(ctx context.Context, args []string, out io.Writer) error {
	b := bundle{Images: imagePrograms, Plugin: plugin, PluginPlatforms: krew.Platforms}
	var key keyFlags
	fs := flag.NewFlagSet("release", flag.ContinueOnError)
	b.flags(fs)
	key.register(fs)
	fs.StringVar(&b.PluginURL, "url", "", "address below which the archives of the plugin are published; the default is the release of the "+
		"version")
	platforms := fs.String("platforms", "", "platforms of images and archives of the plugin, separated by commas; all by default")
	if err := parse(fs, args); err != nil {
		return err
	}
	var err error
	b.ImagePlatforms, err = parsePlatforms(*platforms)
	if err := errors.Join(b.validate(), err); err != nil {
		return err
	}
	if *platforms != "" {
		b.PluginPlatforms = slices.DeleteFunc(slices.Clone(krew.Platforms), func(p golang.Platform) bool {
			return !slices.Contains(b.ImagePlatforms, p)
		})
	}
	if b.Key, err = key.read(); err != nil {
		return err
	}
	return b.build(ctx, out)
}

func runVerify(_ context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	dir := fs.String("release", "", "directory with the release")
	publicKey := fs.String("public-key", "", "public key of minisign, or a file with it")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *publicKey == "" {
		return errors.New("a public key is required: make verify-release PUBLIC_KEY=jobset-apiserver.pub")
	}
	comment, n, err := verifyDirectory(*dir, *publicKey)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d files are those that were signed as %q\n", n, comment)
	return nil
}

func runPublish(ctx context.Context, args []string, out io.Writer) error {
	p := publication{Images: imagePrograms}
	var key keyFlags
	fs := flag.NewFlagSet("publish", flag.ContinueOnError)
	key.register(fs)
	fs.StringVar(&p.Release, "release", "", "directory with the release")
	fs.StringVar(&p.Output, "output", "", "directory for manifests and chart with the registry in them")
	registerRegistry(fs, &p.Registry)
	if err := parse(fs, args); err != nil {
		return err
	}
	if p.Release == "" || p.Output == "" {
		return errors.New("--release and --output are required")
	}
	if p.Registry.Prefix == "" {
		return errors.New("a registry is required: make publish REGISTRY=registry.example.com/team")
	}
	var err error
	if p.Key, err = key.read(); err != nil {
		return err
	}
	return p.publish(ctx, out)
}

func registerRegistry(fs *flag.FlagSet, registry *oci.Registry) {
	fs.StringVar(&registry.Prefix, "registry", "", "host of the registry and path below it: registry.example.com/team")
	fs.BoolVar(&registry.PlainHTTP, "plain-http", false, "use HTTP without TLS; registries on this machine need no permission")
}
