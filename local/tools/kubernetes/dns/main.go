// Package main is CoreDNS with only the plugins that the local cluster uses; all of them would take minutes to build.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// Order in which a request passes them.
	dnsserver.Directives = []string{"bind", "ready", "errors", "template", "kubernetes"}
	coremain.Run()
}
