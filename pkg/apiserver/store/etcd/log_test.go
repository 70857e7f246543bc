// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestLogLevels(t *testing.T) {
	write := func(logger *zap.Logger) {
		logger.Debug("debug")
		logger.Info("info")
		logger.Warn("warn")
		logger.Error("error", zap.Error(errors.New("cause")))
	}
	warn, failed := `"level"=0 "msg"="warn" "a"="b"`, `"msg"="error" "error"=null "a"="b" "error"="cause"`
	cases := map[string]struct {
		phase     phase
		verbosity int
		want      []string
	}{
		"errors only while the member starts":            {phase: starting, want: []string{failed}},
		"warnings and errors while the member serves":    {phase: serving, want: []string{warn, failed}},
		"nothing while the member closes":                {phase: closing},
		"information of the member when it is asked for": {phase: serving, verbosity: chatter, want: []string{`"level"=3 "msg"="info" "a"="b"`, warn, failed}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			core := newLogCore(funcr.New(func(prefix, args string) { got = append(got, fmt.Sprint(prefix, args)) }, funcr.Options{Verbosity: c.verbosity}))
			core.setPhase(c.phase)
			write(zap.New(core).With(zap.String("a", "b")))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// A member whose disk fails ends the process. The last line must say what to do.
func TestLastWords(t *testing.T) {
	var got []string
	core := newLogCore(funcr.New(func(prefix, args string) { got = append(got, fmt.Sprint(prefix, args)) }, funcr.Options{}))
	core.setPhase(serving)
	logger := zap.New(core, zap.WithFatalHook(zapcore.WriteThenPanic))
	func() {
		defer func() { _ = recover() }()
		logger.Fatal("failed to save", zap.Error(errors.New("input/output error")))
	}()
	want := []string{fmt.Sprintf(`"msg"=%q "error"=null "reason"="failed to save" "error"="input/output error"`, lastWords)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
