// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/krew"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/licenses"
)

// collectLicenses returns the modules in images and in the archives of the plugin, on all platforms, and the one with the certificate
// authorities.
func collectLicenses(ctx context.Context, source golang.Source, images []program, plugin program) ([]licenses.Module, error) {
	programs := pluginPrograms(plugin)
	for _, platform := range imagePlatforms {
		programs[platform] = nil
		for _, p := range images {
			programs[platform] = append(programs[platform], p.Package)
		}
	}
	modules, err := licenses.Collect(ctx, source, programs)
	if err != nil {
		return nil, err
	}
	roots, err := rootsModule()
	if err != nil {
		return nil, err
	}
	downloaded, err := golang.Source{Dir: "."}.Download(ctx, roots.Path, roots.Version)
	if err != nil {
		return nil, err
	}
	module, err := licenses.Read(downloaded)
	if err != nil {
		return nil, fmt.Errorf("reading the module with the certificate authorities: %w", err)
	}
	return append(modules, module), nil
}

// pluginPrograms are the platforms that the plugin is built for, with its package.
func pluginPrograms(plugin program) map[golang.Platform][]string {
	programs := map[golang.Platform][]string{}
	for _, platform := range krew.Platforms {
		programs[platform] = []string{plugin.Package}
	}
	return programs
}

// pluginLicenses returns the text with the licenses of all modules in the plugin. It is the same on all platforms.
func pluginLicenses(ctx context.Context, source golang.Source, plugin program) ([]byte, error) {
	modules, err := licenses.Collect(ctx, source, pluginPrograms(plugin))
	if err != nil {
		return nil, err
	}
	return []byte(licenses.Document(modules)), nil
}
