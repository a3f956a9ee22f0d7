# nix run github:kgate-dev/kgate -- doctor
#
# Nix itself has not built this yet (docs/not-measured.md). The hash of the
# modules is worked out without it, by ci/package.
{
  description = "Run one command inside the box that this kernel can really install";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: rec {
        kgate = pkgs.buildGoModule {
          pname = "kgate";
          version = "0-unstable-${self.lastModifiedDate or "19700101000000"}";
          src = self;
          vendorHash = "sha256-lubtVEye+MlgW6ws2YfyxeIRB97ELYSZohrBM2/IfCU=";
          subPackages = [ "cmd/kgate" ];
          env.CGO_ENABLED = 0;
          ldflags = [ "-s" "-w" ];
          # The tests make namespaces and start servers: ci/test runs them.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          # kgate looks for these on PATH.
          propagatedUserEnvPkgs = pkgs.lib.optionals pkgs.stdenv.hostPlatform.isLinux [ pkgs.bubblewrap pkgs.slirp4netns pkgs.iptables ];
          postInstall = ''
            ln -s kgate $out/bin/kgate-sh
            go run -tags manual ./cmd/kgate manual share "$version" 1980-01-01
            installManPage share/man1/*.1
            installShellCompletion --cmd kgate --bash share/bash/kgate --zsh share/zsh/_kgate --fish share/fish/kgate.fish
            install -Dm644 -t $out/share/kgate/schema docs/schema/*.json
            install -Dm644 -t $out/share/kgate/apparmor ci/apparmor/kgate
          '';
          meta = {
            description = "Run one command inside the box that this kernel can really install";
            homepage = "https://github.com/kgate-dev/kgate";
            license = pkgs.lib.licenses.asl20;
            mainProgram = "kgate";
          };
        };
        default = kgate;
      });
    };
}
