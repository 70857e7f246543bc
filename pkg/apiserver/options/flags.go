// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"

	"github.com/spf13/pflag"

	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
)

// Pick adds the named flags of a library's options and leaves out the others: those that do nothing in this server.
func Pick(to *pflag.FlagSet, add func(*pflag.FlagSet), names ...string) {
	copyFlags(to, add, func(name string) bool { return slices.Contains(names, name) })
}

// omit adds the flags of a library's options except the named ones.
func omit(to *pflag.FlagSet, add func(*pflag.FlagSet), names ...string) {
	copyFlags(to, add, func(name string) bool { return !slices.Contains(names, name) })
}

func copyFlags(to *pflag.FlagSet, add func(*pflag.FlagSet), wanted func(string) bool) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(all)
	all.VisitAll(func(flag *pflag.Flag) {
		if wanted(flag.Name) {
			to.AddFlag(flag)
		}
	})
}

func (o *Options) addServingFlags(fs *pflag.FlagSet) {
	omit(fs, o.Recommended.SecureServing.AddFlags, "permit-address-sharing", "permit-port-sharing")
	fs.Lookup("cert-dir").Usage = "Directory for a self-signed serving certificate, used when --tls-cert-file is not given. " +
		"The server keeps tls.crt and tls.key in it, renews them in time, and writes the certificate of their authority to " +
		"ca.crt, for the caBundle of the APIService. Defaults to the directory \"certificates\" below --data-dir."
	fs.Lookup("tls-cert-file").Usage = "File with the serving certificate, followed by intermediate certificates if any. " +
		"Read again when it changes."
	fs.Lookup("tls-private-key-file").Usage = "File with the key of --tls-cert-file. Read again when it changes."
	fs.StringSliceVar(&o.SANs, "tls-san", o.SANs, "DNS names and IP addresses that the self-signed serving certificate is "+
		"valid for. One of them must be the DNS name of the Service that the APIService names.")
	o.ManagedCert.addFlags(fs)
	fs.StringSliceVar(&o.PodWebhookClientNames, "pod-webhook-client-names", o.PodWebhookClientNames,
		"Common names of the client certificates that may call "+
			"the webhook for pods of LeaderWorkerSets, such as the one that kube-apiserver uses if its --admission-control-config-file says so. "+
			"If empty, no client certificate is needed, and callers without one share what they may use by address.")
	Pick(fs, o.Limits.AddUniversalFlags, "external-hostname", "shutdown-delay-duration",
		"shutdown-watch-termination-grace-period", "shutdown-send-retry-after")
}

func (o *Options) addLimitFlags(fs *pflag.FlagSet) {
	Pick(fs, o.Limits.AddUniversalFlags, "max-requests-inflight", "max-mutating-requests-inflight", "request-timeout",
		"min-request-timeout", "goaway-chance", "livez-grace-period", "storage-initialization-timeout")
}

// Flags returns all flags in sections, for a readable help.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sections cliflag.NamedFlagSets
	o.addServingFlags(sections.FlagSet("serving"))
	o.Storage.AddFlags(sections.FlagSet("storage"), o.Recommended.Etcd)
	o.Archive.addFlags(sections.FlagSet("archive"))
	o.Recommended.CoreAPI.AddFlags(sections.FlagSet("main cluster"))
	o.Recommended.EgressSelector.AddFlags(sections.FlagSet("main cluster"))
	o.Recommended.Authentication.AddFlags(sections.FlagSet("authentication"))
	o.Recommended.Authorization.AddFlags(sections.FlagSet("authorization"))
	o.addRuntimeConfigFlag(sections.FlagSet("API groups"))
	o.Recommended.Admission.AddFlags(sections.FlagSet("admission"))
	o.Recommended.Audit.AddFlags(sections.FlagSet("auditing"))
	o.addLimitFlags(sections.FlagSet("limits"))
	o.Recommended.Features.AddFlags(sections.FlagSet("features"))
	o.Gate.AddFlag(sections.FlagSet("features"))
	o.Recommended.Traces.AddFlags(sections.FlagSet("traces"))
	logsapi.AddFlags(o.Logs, sections.FlagSet("logs"))
	global := sections.FlagSet("global")
	verflag.AddFlags(global)
	globalflag.AddGlobalFlags(global, ComponentName, logs.SkipLoggingConfigurationFlags())
	return sections
}
